"""Reads haproxy.cfg: `reader` is the way in; the rooms, in this order: text, directives, http, building."""
