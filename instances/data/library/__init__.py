"""The instance library, which consists of one JSON Lines file for each kind of problem."""
