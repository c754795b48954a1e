"""supervisord in the form in which the appliance uses it, and what systemd is told."""
