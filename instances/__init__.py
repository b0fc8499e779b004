"""Where problems come from: families by kind, library recipes, traces, measurements, checkpoints."""
