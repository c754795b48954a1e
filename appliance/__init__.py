"""A load-balancer appliance: the work of HAProxy and keepalived together."""

__version__ = "0.1.0"
