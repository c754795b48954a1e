"""Checks shared by several programs: of a pool, of a listening program."""
