"""What is being optimised: typed models, problems, plans, results and the judge."""
