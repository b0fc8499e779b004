"""From what a user has to a problem: what is known goes in, all else comes from a family and is
named as assumed.
"""
