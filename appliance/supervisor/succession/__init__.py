"""The take-over of a running appliance by another one: the parts of supervisord that handle it."""
