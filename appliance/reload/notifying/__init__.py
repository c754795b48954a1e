"""Who is told what happens to the appliance: commands, webhooks, syslog."""
