"""Our part in one virtual router: the VRRP instance, its faults, its priority and its counters."""
