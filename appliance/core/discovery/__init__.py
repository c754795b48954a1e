"""Which servers a pool has by what the cluster's API says, and when that is believed."""
