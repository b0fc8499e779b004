"""Typed models, problems, plans, results and the judge."""
