"""Problems made from a user's data: known values are used, and all others come from a family and
are reported as assumed.
"""
