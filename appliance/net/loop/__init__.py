"""One loop for programs that must not be late, and threads for slow work."""
