"""Shell completion for `appliance`: commands, options, and names from the running appliance."""
