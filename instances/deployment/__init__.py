"""Problems that are built from a user's data.

Values that follow from the data are used. All other values are reported as assumed; most of them
come from a family (problem generator).
"""
