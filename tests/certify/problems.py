"""Random decisions: a head, a text's open words, and everything small enough for brute force."""

from __future__ import annotations

import itertools

import torch
from hypothesis import strategies as st

from lexical_sae.certify.row_problem import RowProblem, row_problem
from lexical_sae.model.head_choice import build_head
from lexical_sae.model.open_words import one_source_each
from lexical_sae.model.state import CircuitState


def make_state(
    words: int, classes: int, width: int, *, kind: str, hidden_bias: bool, seed: int
) -> CircuitState:
    """One text whose `words` words are all open."""
    generator = torch.Generator().manual_seed(seed)
    head = build_head(
        kind, dictionary_size=words, classes=classes, width=width, hidden_bias=hidden_bias
    )
    with torch.no_grad():
        for p in head.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    value = torch.rand(words, generator=generator) + 0.05
    index = torch.arange(words)
    open_words = one_source_each(
        torch.zeros_like(index), index, value, value, index, shape=(1,), dictionary_size=words
    )
    with torch.no_grad():
        return CircuitState(head(open_words), open_words, head)


@st.composite
def states(draw: st.DrawFn, most: int = 9) -> CircuitState:
    return make_state(
        draw(st.integers(1, most)),
        draw(st.integers(2, 4)),
        draw(st.integers(1, 6)),
        kind=draw(st.sampled_from(["mlp", "mlp", "linear"])),
        hidden_bias=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31)),
    )


def smallest_flips(problem: RowProblem, ties: bool = False) -> int | None:
    """By brute force: the fewest words whose removal lets another class win, or None.

    By more than rounding; with `ties` also where rounding decides.
    """
    import numpy as np

    for size in range(1, problem.words + 1):
        for removed in itertools.combinations(range(problem.words), size):
            x = np.ones(problem.words)
            x[list(removed)] = 0.0
            logits = problem.logits(x)
            rival = max(logits[c] for c in range(problem.classes) if c != problem.winner)
            if logits[problem.winner] - rival < (problem.slack if ties else -problem.slack):
                return size
    return None


__all__ = ["make_state", "row_problem", "smallest_flips", "states"]
