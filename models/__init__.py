"""Data types for models, problems, plans and results, and the judge that evaluates plans."""
