"""Handling of the console, including output on stdout, progress on stderr, and Ctrl-C."""
