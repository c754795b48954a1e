"""What a Kubernetes API server is asked and answers, and the file that says how it is reached."""
