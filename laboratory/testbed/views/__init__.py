"""What records and recorded drafts come to, as tables, pictures and a page."""
