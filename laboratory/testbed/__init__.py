"""A small laboratory with a real pair of models, real processes and a shaped link, which tests
predictions.
"""
