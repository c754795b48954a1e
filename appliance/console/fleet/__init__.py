"""`appliance fleet`: commands for all nodes of one configuration, by OpenSSH's client."""
