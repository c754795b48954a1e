"""Events of the whole appliance: what they mean together, and how they are sent to others."""
