"""What may stand behind one key: quantities, addresses, names, words of HTTP and VRRP."""
