"""Sources of problems: problem generators (families), traces, measurements and checkpoints."""
