"""The content of the boards: files in shared memory with one writer."""
