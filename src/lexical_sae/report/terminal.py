"""One decision in the terminal: the text with its words coloured, and the open words beneath."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.console import Group
from rich.table import Table
from rich.text import Text

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.attribution.words import (
    SpanScore,
    aggregate_subword_attributions,
    position_contributions,
)
from lexical_sae.model.lexical_sae import LexicalSAE

FOR, AGAINST = "green", "red"


def coloured(text: str, words: Sequence[SpanScore]) -> Text:
    """The text: words that speak for the label in green, against it in red, strong ones bold."""
    shown = Text(text)
    strongest = max((abs(word.score) for word in words), default=0.0)
    for word in words:
        share = abs(word.score) / strongest if strongest else 0.0
        if share >= 0.05:
            colour = FOR if word.score > 0 else AGAINST
            shown.stylize(f"bold {colour}" if share >= 0.4 else colour, word.start, word.end)
    return shown


@torch.no_grad()
def show_decision(model: LexicalSAE, text: str, top: int = 6) -> Group:
    """Label, probability, the coloured text, the strongest open words and the exact sum."""
    encoded = model.encode([text])
    state = model.classify(**encoded.model_inputs())
    label = int(state.predicted[0])
    attribution = compute_attribution_tensor(state, label)  # [P]
    length = encoded.input_ids.shape[1]
    scores = position_contributions(state, attribution, length)[0]
    words = aggregate_subword_attributions(encoded, 0, scores)
    probability = float(state.logits[0].softmax(-1)[label])
    heading = Text.assemble(
        (model.config.labels[label], "bold"), f"  {100 * probability:.0f} %", style=""
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    for p in attribution.abs().argsort(descending=True)[:top].tolist():
        value = float(attribution[p])
        if value == 0:
            continue
        start, end = encoded.offsets[0][int(state.positions[p])]
        table.add_row(
            Text(f"{value:+.2f}", style=FOR if value > 0 else AGAINST),
            Text(_word(model, int(state.open_words.word[p]))),
            Text(f"opened by “{text[start:end]}”", style="dim"),
        )
    rest = float(attribution.sum()) - sum(
        float(attribution[p]) for p in attribution.abs().argsort(descending=True)[:top].tolist()
    )
    others = max(0, len(attribution) - top)
    table.add_row(Text(f"{rest:+.2f}"), Text(f"{others} other words", style="dim"), "")
    table.add_row(Text(f"{float(state.b_eff[0, label]):+.2f}"), Text("bias", style="dim"), "")
    residual = float(verify_sum(state).residual.max())
    total = Text(f"= {float(state.logits[0, label]):.4f}, the logit (off by {residual:.0e})")
    return Group(heading, coloured(text, words), table, total)


def _word(model: LexicalSAE, coordinate: int) -> str:
    assert model.dictionary is not None
    return model.dictionary.words[coordinate]
