"""When this node announces its shared addresses: the table of their states."""
