"""Certificates of somebody else, checked by measuring all of it again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexical_sae.surgery.certificate import (
    FORMAT,
    VERSION,
    Advance,
    certify_removal,
    data_identity,
    some_rows,
)

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text.dataset import TextDataset

# Another processor or batch size rounds differently. Measured on a trained model: means of changes
# move by 4e-8 and the largest difference by 3e-7 of logits of size 3; a hundred times and three
# times that. What is small must not pass with another sign, so the absolute part is tiny.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
PROBE = 0.02  # a probe's fit moves further
LARGEST_SEED = 2**32 - 1  # that all generators of random numbers take
DEEPEST = 32  # mappings and lists in one another
SECTIONS = {
    "model": dict,
    "suppressed": list,
    "data": dict,
    "non_interference": dict,
    "unread": dict,
    "effect": dict,
    "accuracy": dict,
    "leak": dict,
    "not_claimed": list,
    "seed": int,
}
# for the record: where it was made, and by whom
UNMEASURED = ("format", "version", "environment", "signature")


def read_certificate(file: Path) -> dict[str, Any]:
    """A certificate of this kind and version, whole; anything else is refused."""
    if not file.is_file():
        raise ValueError(f"{file} was not found; expected a certificate.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_once_each)
    except _TwiceError as error:
        raise ValueError(f"{file} says {error} twice; the certificate is damaged.") from None
    except ValueError:
        raise ValueError(f"{file} is no JSON; expected a certificate.") from None
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply; expected a certificate.") from None
    if _depth_is_over(found, DEEPEST):  # whatever walks it would break
        raise ValueError(f"{file} is nested too deeply; expected a certificate.")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{file} is no {FORMAT}; expected one that `lexical-sae certify` wrote.")
    if found.get("version") != VERSION:
        raise ValueError(
            f"{file} has version {found.get('version')!r}; expected {VERSION}. Use the version of "
            "lexical-sae that wrote it."
        )
    strange = sorted({*found} - {*SECTIONS, *UNMEASURED})
    if strange:
        raise ValueError(f"{file} claims {strange[0]!r}, which `certify` does not measure.")
    for section, kind in SECTIONS.items():
        if not isinstance(found.get(section), kind):
            raise ValueError(f"{file} has no whole {section!r}; the certificate is damaged.")
    if isinstance(found["seed"], bool) or not 0 <= found["seed"] <= LARGEST_SEED:
        raise ValueError(
            f"{file} has the seed {found['seed']}; expected a whole number from 0 to "
            f"{LARGEST_SEED}. The certificate is damaged."
        )
    if not isinstance(found["data"].get("measured"), dict):
        raise ValueError(f"{file} has no whole 'data'; the certificate is damaged.")
    return found


def _depth_is_over(found: Any, most: int) -> bool:
    """Level by level and not by recursion, which is what it guards."""
    level = [found]
    for _ in range(most):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


class _TwiceError(Exception):
    """A key that stands twice: readers would see one value, and the check another."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(repr(key))
        found[key] = value
    return found


def differences(
    certificate: dict[str, Any],
    model: LexicalSAE,
    test: TextDataset,
    train: TextDataset | None,
    *,
    advance: Advance = lambda rows: None,
) -> list[str]:
    """What a new measurement finds otherwise than the certificate says, a sentence each."""
    from lexical_sae.model.fingerprint import dictionary_hash, model_hash

    said = certificate["model"]
    identity = {"hash": model_hash(model), "dictionary": dictionary_hash(model)}
    for name, value in identity.items():
        if said.get(name) != value:
            what = "model" if name == "hash" else name
            return [
                f"The {what} is another one: {value[:12]}… instead of {str(said.get(name))[:12]}…"
            ]
    data = data_identity(some_rows(test), None if train is None else some_rows(train))
    found = _apart("data", certificate["data"], data)
    if found:  # nothing that follows could be the same
        return found
    again = certify_removal(model, test, train, seed=certificate["seed"], advance=advance)
    for section in SECTIONS:
        allowed = (PROBE, PROBE) if section == "leak" else (RELATIVE, ABSOLUTE)
        found += _apart(section, certificate[section], again[section], allowed)
    return found


def _apart(
    where: str, said: Any, again: Any, allowed: tuple[float, float] = (0.0, 0.0)
) -> list[str]:
    """Every place where two values differ by more than is allowed, of their size or at all."""
    if isinstance(said, dict) and isinstance(again, dict):
        keys = sorted({*said, *again})
        return [
            line
            for key in keys
            for line in _apart(f"{where}.{key}", said.get(key), again.get(key), allowed)
        ]
    if isinstance(said, list) and isinstance(again, list) and len(said) == len(again):
        pairs = enumerate(zip(said, again, strict=True))
        return [line for i, (a, b) in pairs for line in _apart(f"{where}[{i}]", a, b, allowed)]
    if isinstance(said, float) and isinstance(again, float):
        same = math.isclose(said, again, rel_tol=allowed[0], abs_tol=allowed[1])
    else:  # counts, names and hashes are exact
        same = type(said) is type(again) and said == again
    return [] if same else [f"{where} is {again!r}; the certificate says {said!r}."]
