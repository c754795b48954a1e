"""What `make release` does beyond building: notes, checksums, signatures, the same bytes for a commit."""
