"""A limit of a whole group, divided among its workers."""


def share(total: int, *, workers: int, index: int) -> int:
    """Return one worker's part of `total`, 0 (no limit) for 0.

    The parts add up to `total` (largest remainder), except that nobody gets less than 1: a limit below the
    number of workers would otherwise leave some of them without the server that their clients wait for.
    """
    if total == 0:
        return 0
    return max(1, total // workers + (index % workers < total % workers))
