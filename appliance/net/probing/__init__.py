"""Health checks of servers: one question to one server, and where its name leads."""
