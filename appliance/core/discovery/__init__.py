"""Which servers a pool has according to the cluster's API, and when that is accepted."""
