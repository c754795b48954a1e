"""What we know of OpenShift."""
