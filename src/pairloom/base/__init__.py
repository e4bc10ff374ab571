"""Shared utilities: types, checks, row numbers of the clock, state trees, compiled code, seeds, threads."""
