"""A cluster's API: connections to its servers, who we are there, and lists that are kept up to date."""
