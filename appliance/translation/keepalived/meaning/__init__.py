"""What the directives of keepalived.conf mean, and what they become here."""
