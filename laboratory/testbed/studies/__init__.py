"""What recorded drafts say of what the models assume: each study recomputes its figures from the
logs.
"""
