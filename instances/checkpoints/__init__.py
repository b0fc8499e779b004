"""Models of decoders, read from the config files of checkpoints."""
