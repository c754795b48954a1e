"""HAProxy's statistics and its command line, as bytes and values."""
