"""The words of a progress line: which values, in which order, and which go for lack of room."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexical_sae.training.combinations import TERMS


@dataclass(frozen=True)
class Piece:
    """A part of a line; for lack of room the one with the highest `rank` is left out first."""

    text: str
    rank: int


@dataclass(frozen=True)
class Style:
    """What the output can show: a terminal with an old code page has no λ."""

    multiplier: str = "λ"
    separator: str = " · "

    @classmethod
    def of(cls, encoding: str) -> Style:
        try:
            "λ·".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return cls("lambda", ", ")
        return cls()


def fit(pieces: Sequence[Piece], separator: str, room: int | None) -> str:
    """As many of the pieces as `room` columns hold, in their order; the most important win."""
    kept = sorted(range(len(pieces)), key=lambda i: pieces[i].rank)
    while kept:
        text = separator.join(pieces[i].text for i in sorted(kept))
        if room is None or len(text) <= room:
            return text
        kept.pop()
    return ""


def phase_of(logs: Mapping[str, Any]) -> str:
    """A dense model has no words, so no circuits for which it could warm up."""
    if "open_words" not in logs or "phase" not in logs:
        return "training"
    return "circuits" if logs["phase"] else "warm-up"


def value_pieces(
    logs: Mapping[str, Any], accuracy: float | None, style: Style, decimals: int = 2
) -> list[Piece]:
    """The latest values of a training log, and the last validation accuracy."""
    task = "ce" if "ce" in logs else "loss"
    named = [(task, task, 0)]
    named += [(name, name, 4 + i) for i, name in enumerate((*TERMS, "distillation"))]
    named.append(("multiplier", style.multiplier, 3))
    pieces = [
        Piece(f"{shown} {number(logs[key], decimals)}", rank)
        for key, shown, rank in named
        if _is_number(logs.get(key))
    ]
    if _is_number(logs.get("open_words")):
        pieces.append(Piece(f"open words {logs['open_words']:.0f}", 1))
    if accuracy is not None:
        pieces.append(Piece(f"accuracy {percent(accuracy)}", 2))
    return pieces


def evaluation_pieces(metrics: Mapping[str, Any], epoch: float) -> list[Piece]:
    """The line of one evaluation; none without an eval_ value to show."""
    pieces = []
    if _is_number(metrics.get("eval_f1")):
        pieces.append(Piece(f"validation F1 {percent(metrics['eval_f1'])}", 0))
    elif _is_number(metrics.get("eval_accuracy")):
        pieces.append(Piece(f"validation accuracy {percent(metrics['eval_accuracy'])}", 0))
    elif _is_number(metrics.get("eval_ce")):
        pieces.append(Piece(f"validation ce {number(metrics['eval_ce'], 3)}", 0))
    if _is_number(metrics.get("eval_open_words")):
        pieces.append(Piece(f"open words {number(metrics['eval_open_words'], 1)}", 2))
    if _is_number(metrics.get("eval_circuit_agreement")):
        agreement = percent(metrics["eval_circuit_agreement"])
        pieces.append(Piece(f"circuit agreement {agreement}", 3))
    return [Piece(f"epoch {epoch:.1f}", 1), *pieces] if pieces else []


def number(value: float, decimals: int) -> str:
    """Fixed decimals, so that a line does not jump about; small values keep a digit."""
    if math.isfinite(value) and 0 < abs(value) < 0.5 * 10**-decimals:
        return f"{value:.0e}"
    return f"{value:.{decimals}f}" if abs(value) < 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))
