"""Commands of keepalived.conf that we can do without: what they look at."""
