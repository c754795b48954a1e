"""What `make audit` looks at: known vulnerabilities of the Python packages that ship, or build what ships."""
