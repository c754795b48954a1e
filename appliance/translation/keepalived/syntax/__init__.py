"""The syntax of keepalived.conf: from files to directives and their blocks, as keepalived 2.2 reads them."""
