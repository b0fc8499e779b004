"""Methods for `fair-goodput` (paper 5): long-run rates of clients that share one verifier."""
