"""What the appliance does, as metrics: our own, and those of the exporters that people know."""
