"""Where problems come from: families by kind, traces, measurements, checkpoints."""
