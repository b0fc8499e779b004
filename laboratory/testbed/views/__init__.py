"""Views of records and recorded drafts as tables, pictures and a page."""
