"""Where the windows over a long sequence of tokens stand, and which of them a token belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

OVERLAP = 0.25
"""Share of a window that it has in common with the next one."""


def window_starts(total: int, room: int) -> list[int]:
    """The first token of each window of `room` tokens over a sequence of `total`; the last window
    ends where the sequence ends."""
    if total <= room:
        return [0]
    step = max(1, room - int(OVERLAP * room))
    return [*range(0, total - room, step), total - room]


def best_window(place: int, starts: Sequence[int], room: int, total: int) -> tuple[int, int]:
    """(window, context): the window in which the token at `place` has the most context on its
    shorter side; of equal ones the first. The sequence's own edges cut nothing off."""
    found = (-1, -1)
    # only the windows that start at most `room` before the place hold it
    for number in range(bisect_right(starts, place - room), bisect_right(starts, place)):
        start, end = starts[number], starts[number] + room
        left = place - start if start else total
        right = end - 1 - place if end < total else total
        if min(left, right) > found[1]:
            found = (number, min(left, right))
    return found
