"""Reads haproxy.cfg: `reader` is the way in; the rooms are passed in the order text, directives, http, building."""
