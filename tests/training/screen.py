"""A terminal of the smallest kind: what stands on the screen after everything was written."""

from __future__ import annotations

import re

_PARTS = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def screen(written: str, width: int) -> tuple[list[str], bool]:
    """The lines that are not empty, and whether the cursor can be seen. A line longer than `width`
    goes on in the next one, as on a real terminal."""
    lines, row, column, cursor = [""], 0, 0, True
    for private, number, letter, move, text in _PARTS.findall(written):
        if private and number == "25":
            cursor = letter == "h"
        elif letter == "A":
            row = max(0, row - int(number or 1))
        elif letter == "K":
            lines[row] = ""
        elif move == "\r":
            column = 0
        elif move == "\n":
            row, column = row + 1, 0
        for character in text:
            if column == width:
                row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row].ljust(column)[:column] + character + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines if line.strip()], cursor
