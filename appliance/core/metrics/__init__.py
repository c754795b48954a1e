"""Metrics of the appliance: our own, and those of well-known exporters."""
