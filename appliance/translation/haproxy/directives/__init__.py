"""What each directive of haproxy.cfg says of its section."""
