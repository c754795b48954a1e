"""Translates `virtual_server`, which IPVS would forward, into frontends and pools that nftables forwards."""
