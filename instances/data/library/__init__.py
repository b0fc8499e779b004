"""The instance library, with one file of JSON lines for each kind of problem."""
