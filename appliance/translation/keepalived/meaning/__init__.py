"""Translates the directives of keepalived.conf into keys of our configuration."""
