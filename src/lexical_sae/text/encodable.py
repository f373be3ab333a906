"""Half characters: JSON can smuggle in a lone surrogate, at which tokenizers and files break."""

from __future__ import annotations

from lexical_sae.text.errors import DataError


def check_encodable(text: str, where: str, role: str = "the text") -> None:
    """Refuse a ``text`` that UTF-8 has no bytes for."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: {role} holds half a character ({text[error.start]!r} at position "
            f"{error.start + 1}), which cannot be encoded as UTF-8; remove it."
        ) from None
