"""Events of the whole appliance: published on boards, collected into one persistent file, read by all."""
