"""Policies that decide after every token whether to continue drafting (paper 2, Sec. 4.1), and the
rejection predictors that they use.
"""
