"""Runs that end in tables and figures."""
