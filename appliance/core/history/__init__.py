"""What the appliance did in the last hours: minutes of figures, the lines drawn of them, recent shares."""
