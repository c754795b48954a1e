"""A load-balancer appliance: the work of HAProxy and keepalived together."""

__version__ = "0.2.0"
