"""A running model to look at: its stream so far as a figure, and as a page that follows it."""
