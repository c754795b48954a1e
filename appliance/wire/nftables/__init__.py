"""Commands for nftables, and its answers, as JSON (libnftables-json(5))."""
