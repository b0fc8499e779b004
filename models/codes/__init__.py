"""Codes of token distributions: their size in bits and the loss by quantising."""
