"""Studies that test the assumptions of the models on recorded drafts. Each study recomputes its
figures from the logs.
"""
