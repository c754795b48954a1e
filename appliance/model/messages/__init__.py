"""Problems of a configuration, and how messages quote what stands in it."""
