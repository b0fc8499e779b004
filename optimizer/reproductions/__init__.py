"""What the papers print, computed again: one module a paper, each a list of figures and tables."""
