"""The VRRP instances in their sync groups: take events, perform effects, and change with a reload."""
