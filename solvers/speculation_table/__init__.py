"""The best speculation length for every batch size, in few ranges."""
