"""Adapters: estimators and metrics in the interfaces of other libraries."""
