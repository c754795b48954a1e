"""The checks of `appliance check --here`: what a configuration needs and this machine lacks."""
