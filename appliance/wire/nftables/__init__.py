"""What is said to nftables, and what it answers, as JSON (libnftables-json(5))."""
