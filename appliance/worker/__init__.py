"""A worker process of a proxy: accepts connections on inherited listeners and relays them to servers.

Its master starts it as `python -m appliance.programs.worker <arguments>` (`worker_arguments`). It has a
control socket and a board of its own, outlives its master, and follows the health board in every generation.
"""
