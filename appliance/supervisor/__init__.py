"""The parts of supervisord as the appliance runs it: what it does otherwise than the original."""
