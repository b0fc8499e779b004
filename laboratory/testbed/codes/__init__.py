"""Codes of quantised distributions as texts of zeros and ones: that of Eq. 6 of paper 3, and one
for distributions with few tokens.
"""
