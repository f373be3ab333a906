"""Text files line by line: UTF-8 with or without a byte order mark, bad bytes left to be found."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from lexical_sae.text.errors import DataError

# What Python makes of the bytes 0x80 to 0xff where they are no UTF-8.
_FIRST_ESCAPE, _LAST_ESCAPE = 0xDC80, 0xDCFF


def open_lines(path: Path, newline: str) -> TextIO:
    """The file, open for reading; a byte that is not UTF-8 stays in its line, as a surrogate."""
    try:
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check its rights.") from None


def find_bad_byte(text: str) -> str | None:
    """What to say of the first byte in ``text`` that is not UTF-8, or None."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if _FIRST_ESCAPE <= code <= _LAST_ESCAPE:
            return f"the byte 0x{code - 0xDC00:02x} cannot be read as UTF-8"
        return f"half a character ({text[error.start]!r}) cannot be encoded as UTF-8"
    return None
