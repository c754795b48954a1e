"""The operator's files: our YAML, haproxy.cfg, keepalived.conf; read, followed and judged."""
