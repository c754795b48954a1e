"""What a status is made of, collected from boards, control sockets, supervisord and files."""
