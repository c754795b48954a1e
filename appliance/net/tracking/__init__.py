"""Checks that more than one program makes: of a pool, of a program that listens."""
