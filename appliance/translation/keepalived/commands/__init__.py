"""Commands in keepalived.conf that our own checks can replace: what they check."""
