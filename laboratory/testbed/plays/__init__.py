"""Plans carried out by the processes of the laboratory, with one module per kind of problem."""
