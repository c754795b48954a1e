"""What `appliance top` shows and does, without a terminal: rates, tables, keys, the lines of its screen."""
