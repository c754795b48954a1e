"""Files of HAProxy and keepalived, read and turned into our configuration, with a word on every line."""
