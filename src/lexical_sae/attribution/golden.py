"""Golden explanations: a test that a model still decides for the same reasons.

from lexical_sae import assert_explanation, explain

golden = explain(model, text).to_dict()            # once; keep it as JSON
assert_explanation(model, text, golden)             # in a test, from then on
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexical_sae.attribution.explain import explain

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def assert_explanation(
    model: LexicalSAE,
    text: str,
    golden: Mapping[str, Any] | str | Path,
    *,
    top: int = 10,
    rank_tolerance: int = 0,
    value_tolerance: float = 1e-4,
) -> None:
    """Fail if the `top` words of the golden explanation are not where and what they were.

    A word may have moved by `rank_tolerance` places in the order of size, and its contribution,
    the bias and the logit by `value_tolerance`. `golden` is what `to_dict` gave, or a JSON file.
    """
    if isinstance(golden, (str, Path)):
        kept: dict[str, Any] = json.loads(Path(golden).read_text(encoding="utf-8"))
    else:
        kept = dict(golden)
    method = kept.get("method", "contributions")
    found = explain(model, text, kept["label"], kept.get("against"), method=method).to_dict()
    faults = [
        f"{name} is {found[name]!r}, was {kept[name]!r}"
        for name in ("text", "predicted")
        if found[name] != kept.get(name, found[name])
    ]
    for name in ("logit", "bias"):
        if not abs(found[name] - kept[name]) <= value_tolerance:
            faults.append(f"{name} is {found[name]:.6g}, was {kept[name]:.6g}")
    exact = all("coordinate" in entry for entry in kept["vocabulary"])
    places = {_key(entry, exact): i for i, entry in enumerate(found["vocabulary"])}
    for rank, entry in enumerate(kept["vocabulary"][:top]):
        word, place = entry["word"], places.get(_key(entry, exact))
        if place is None:
            faults.append(f"{word!r} no longer contributes, was {entry['contribution']:+.4g}")
            continue
        now = found["vocabulary"][place]["contribution"]
        if abs(place - rank) > rank_tolerance:
            faults.append(f"{word!r} is at place {place + 1}, was at {rank + 1}")
        if not abs(now - entry["contribution"]) <= value_tolerance:
            faults.append(f"{word!r} gives {now:+.6g}, gave {entry['contribution']:+.6g}")
    if faults:
        raise AssertionError(f"The explanation of {text!r} has changed: {'; '.join(faults)}.")


def _key(entry: Mapping[str, Any], exact: bool) -> tuple[Any, ...]:
    """Two coordinates may be shown as the same word; a golden written by hand has words only."""
    return (entry["word"], entry["coordinate"]) if exact else (entry["word"],)
