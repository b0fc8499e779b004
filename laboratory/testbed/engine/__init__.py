"""The pair in a real serving engine: measure throughput, tune a table on a part of it, and measure
that table.
"""
