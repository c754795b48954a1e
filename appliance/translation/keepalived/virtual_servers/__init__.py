"""`virtual_server`: what IPVS would forward, as frontends and pools that nftables forwards."""
