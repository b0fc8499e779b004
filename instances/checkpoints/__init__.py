"""Decoders from the config files of their checkpoints."""
