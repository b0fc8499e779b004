"""Runtimes measured on the machine at hand."""
