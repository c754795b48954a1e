"""The sockets of one virtual router."""
