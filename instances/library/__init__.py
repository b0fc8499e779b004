"""Recipes of the instance library: which problems of which families it holds."""
