"""Sections that read HTTP, which we do not: how to find them, and how HAProxy keeps serving them."""
