"""Methods for `serving-latency` (paper 1)."""
