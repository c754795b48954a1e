"""The data of a status, collected from boards, control sockets, supervisord and files."""
