"""Requests to a Kubernetes API server, its answers, and the file with its address and credentials."""
