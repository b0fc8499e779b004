"""Plans carried out by the laboratory's processes, one module per kind of problem."""
