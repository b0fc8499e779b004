"""Codes for token distributions."""
