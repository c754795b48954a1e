"""Sections that read HTTP, which is not done here: which they are, and how HAProxy goes on with them."""
