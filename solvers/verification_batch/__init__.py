"""Methods for `verification-batch` (paper 2)."""
