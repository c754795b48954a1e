"""Health checks of servers: one check of one server, and the resolution of its name."""
