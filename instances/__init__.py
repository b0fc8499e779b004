"""Sources of problems: families by kind, traces, measurements and checkpoints."""
