"""What `appliance status` shows, and how it follows from observations of the machine."""
