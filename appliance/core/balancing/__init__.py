"""Which server of a pool takes a connection, and whether the client may have one at all."""
