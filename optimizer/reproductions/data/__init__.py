"""Printed statements of the papers, one file each."""
