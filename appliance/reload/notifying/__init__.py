"""Notifications of the appliance's events: by commands, webhooks and syslog."""
