"""Sources of problems: families (problem generators), traces, measurements and checkpoints."""
