"""Codes that represent token distributions as bit strings."""
