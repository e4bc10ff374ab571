"""Monitor a running model: its stream so far as a figure, and as an HTML page that updates itself."""
