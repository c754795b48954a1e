"""The data path: connections accepted, and moved to servers and back."""
