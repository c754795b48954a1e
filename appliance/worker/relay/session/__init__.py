"""One connection of a client and its server, from its first byte to its end."""
