"""The pair in a real serving engine: throughput measured, a table tuned on a part of it, and
measured again.
"""
