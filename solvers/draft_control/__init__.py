"""Methods for `draft-control` (paper 3, Eq. 12)."""
