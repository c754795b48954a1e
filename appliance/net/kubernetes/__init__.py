"""A cluster's API: connections to its servers, our credentials, and up-to-date lists."""
