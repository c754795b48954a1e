"""The appliance's use of supervisord, and notifications to systemd."""
