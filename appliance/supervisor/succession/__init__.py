"""The take-over of a running appliance by another one: the parts of supervisord that have to do with it."""
