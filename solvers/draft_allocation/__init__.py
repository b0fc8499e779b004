"""Methods for `draft-allocation` (paper 5, Eq. 5)."""
