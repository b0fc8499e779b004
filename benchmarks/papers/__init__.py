"""The ledger of the papers: their statements, our assumptions and our results."""
