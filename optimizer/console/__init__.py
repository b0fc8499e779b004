"""Output of the command, its progress on stderr, and its end on Ctrl-C."""
