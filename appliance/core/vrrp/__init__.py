"""The election of a virtual router and what belongs to it: RFC 9568 without sockets and clocks."""
