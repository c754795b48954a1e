"""Boards: files in shared memory with one writer, and readers that need no lock."""
