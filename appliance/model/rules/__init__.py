"""Rules between keys of the configuration."""
