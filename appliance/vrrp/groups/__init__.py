"""The VRRP instances in their sync groups: events in, effects performed, and how a reload changes them."""
