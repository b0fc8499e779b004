"""Console handling: output of the command, progress on stderr, and termination on Ctrl-C."""
