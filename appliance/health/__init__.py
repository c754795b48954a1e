"""The parts of the program `health`: its checks, its log, the operator states that it keeps, its commands."""
