"""Events of the whole appliance: told on boards, collected into one file that is kept, read by all."""
