"""Our configuration, made of what the sections of haproxy.cfg said."""
