"""The parts of supervisord as the appliance runs it: its differences from the original."""
