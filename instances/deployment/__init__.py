"""Problems that are built from a user's data.

Known values are used; all other values come from a family and are reported as assumed.
"""
