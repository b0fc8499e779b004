"""Readers for text lines, tables, JSON files and YAML files written by other programs."""
