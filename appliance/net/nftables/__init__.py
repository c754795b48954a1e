"""The kernel's nftables, by way of libnftables."""
