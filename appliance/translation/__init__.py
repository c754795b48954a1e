"""Translates files of HAProxy and keepalived into our configuration, with an outcome for every line."""
