"""The page for people: its values, its template, its style and its script."""
