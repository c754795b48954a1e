"""What `appliance status` shows, and how it follows from what was found on the machine."""
