"""A small laboratory: a real pair of models, real processes and a shaped link, to hold predictions
against.
"""
