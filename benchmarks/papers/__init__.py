"""The ledger of the papers: what they state, what their simulations assume, and what came out of
our runs.
"""
