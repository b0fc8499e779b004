"""Policies that decide token by token whether to draft on (paper 2, Sec. 4.1), and the predictors
behind them.
"""
