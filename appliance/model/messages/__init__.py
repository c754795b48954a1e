"""Problems of a configuration, and how messages quote its values."""
