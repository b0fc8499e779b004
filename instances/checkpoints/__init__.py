"""Parameter counts and cost models of decoders, read from the config files of checkpoints."""
