"""The parts of the program `vrrp`: one virtual router, its group, and what is said and asked about them."""
