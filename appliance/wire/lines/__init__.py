"""Lines and datagrams between our own programs."""
