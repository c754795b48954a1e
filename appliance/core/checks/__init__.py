"""What health checks say of servers over time."""
