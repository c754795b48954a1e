"""The beginning of a TLS connection, as far as it can be read without a key."""
