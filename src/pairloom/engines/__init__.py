"""One truth, several engines: each runs the parts over rows and changes the state."""
