"""Events of the whole appliance: what they amount to, and how they are told to others."""
