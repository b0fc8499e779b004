"""The instance library: a file of JSON lines per kind of problem."""
