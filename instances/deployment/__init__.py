"""Problems that are built from a user's data.

Values that follow from the data are used. All other values come from a family (problem generator)
and are reported as assumed.
"""
