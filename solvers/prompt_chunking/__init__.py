"""Methods for `prompt-chunking` (paper 4, Sec. 3.3)."""
