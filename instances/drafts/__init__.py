"""What draft models say of their tokens: logs, traces of confidence, pairs of distributions."""
