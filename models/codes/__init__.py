"""Codes that encode token distributions as bits."""
