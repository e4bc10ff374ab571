"""What everything stands on: types, checks, the clock, state trees, compiled code, seeds, threads."""
