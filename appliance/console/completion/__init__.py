"""What a shell offers behind `appliance`: commands, options, and the names of what runs."""
