"""The tracks of a virtual router's priority, and the commands that it runs: everything that may block."""
