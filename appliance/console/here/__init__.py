"""What `appliance check --here` finds of this machine: what a configuration needs of it and it lacks."""
