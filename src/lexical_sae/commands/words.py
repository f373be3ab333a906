"""``lexical-sae words``: the words that a text opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import plain

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE


def words(
    model: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    text: Annotated[list[str], typer.Argument(help="One or more texts.")],
    top: Annotated[int, typer.Option(min=1, help="Words to show for each input word.")] = 6,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text.")] = False,
) -> None:
    """Show the words that each word of a text opens, and that the sum over them is the logit."""
    from lexical_sae.attribution.verify import verify_sum
    from lexical_sae.runs import load_run

    loaded = load_run(model)
    for one in text:
        encoded = loaded.encode([one])
        state = loaded.classify(**encoded.model_inputs())
        residual = float(verify_sum(state).residual.max())
        opened = _opened(loaded, encoded, state)
        if as_json:
            print(json.dumps({"text": one, "open_words": opened, "residual": residual}))
            continue
        plain(one)
        sources = sorted({(word["start"], word["end"], word["from"]) for word in opened})
        for start, _, source in sources:
            best = [word for word in opened if word["start"] == start][:top]
            row = "  ".join(f"{word['word']} {word['activation']:.2f}" for word in best)
            plain(f"  {source:>14}  {row}")
        plain(f"  {len(opened)} open words; their sum misses the logit by {residual:.1e} at most")


def _opened(model: LexicalSAE, encoded: Any, state: Any) -> list[dict[str, Any]]:
    """Open words of the one text, largest activation first."""
    from lexical_sae.attribution.words import input_words

    open_words = state.open_words
    assert model.dictionary is not None
    source_of = {p: word for word in input_words(encoded, 0) for p in word.positions}
    found = []
    for word, value, position in zip(
        open_words.word.tolist(),
        open_words.value.tolist(),
        open_words.position.tolist(),
        strict=True,
    ):
        source = source_of[position]
        found.append(
            {
                "word": model.dictionary.words[word],
                "activation": value,
                "from": source.text,
                "start": source.start,
                "end": source.end,
            }
        )
    return sorted(found, key=lambda item: -float(item["activation"]))
