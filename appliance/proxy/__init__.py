"""The master of one group's workers: does what the rollout decides, and answers prepare, commit and abort.

It touches no data. It holds listening sockets, processes and their control connections; when it is killed,
all of these live on in the workers, and the next master takes them over.
"""
