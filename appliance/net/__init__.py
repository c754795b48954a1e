"""One kernel or network facility for each module."""
