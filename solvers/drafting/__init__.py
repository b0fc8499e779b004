"""Policies that decide after every draft token whether to continue drafting (paper 2, Sec. 4.1),
and the rejection predictors on which these policies rely.
"""
