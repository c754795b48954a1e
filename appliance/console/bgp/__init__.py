"""`appliance bgp`: shared IPs, and how routers learn them."""
