"""Translates haproxy.cfg, starting in `reader`; its rooms in order: text, directives, http, building."""
