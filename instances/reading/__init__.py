"""Readers for files of other programs: lines, tables, JSON and YAML."""
