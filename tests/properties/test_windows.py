"""Long texts in windows: the fast path is the plain one, sums hold, and words know their place."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lexical_sae.attribution.explain import explain_many
from lexical_sae.attribution.verify import verify_sum
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.model.reference import plain_documents, plain_logits
from lexical_sae.model.windows import classify_windows
from lexical_sae.text.alignment import special_frame
from lexical_sae.text.windows import best_window, window_starts
from tests.tiny import TEXTS, tiny_model

SIZE = 16  # tokens of a window, special ones included
FAMILIES = ("bert", "roberta", "deberta-v2")
MODELS = {
    (family, gate, topk): tiny_model(
        family, gate=gate, topk_per_position=topk, positions=positions, max_tokens=SIZE
    ).read_windows()
    for family in FAMILIES
    for gate, topk, positions in (("shift", 0, "words"), ("jump", 2, "content"))
}
words = st.sampled_from([w for text in TEXTS for w in text.split()] + ["unseen", "Ünïcode", "😀"])
documents = st.lists(words, min_size=1, max_size=60).map(" ".join)


def plain_states(model: LexicalSAE, ids: list[int]) -> Tensor:
    """h [L, H] of one whole text, token by token from the window with the most context."""
    before, after = special_frame(model.tokenizer)
    room = SIZE - len(before) - len(after)
    body = ids[len(before) : len(ids) - len(after)]
    if len(body) <= room:
        read = torch.tensor([ids])
        return model.hidden_states(read, torch.ones_like(read))[0]
    starts = [*range(0, len(body) - room, room - room // 4), len(body) - room]
    read = torch.tensor([[*before, *body[s : s + room], *after] for s in starts])
    each = model.hidden_states(read, torch.ones_like(read))  # [W, SIZE, H]
    h = torch.zeros(len(ids), each.shape[-1], dtype=each.dtype)  # special tokens open nothing
    for place in range(len(body)):
        context = []
        for start in starts:
            left = place - start if start > 0 else len(body)
            right = start + room - 1 - place if start + room < len(body) else len(body)
            context.append(min(left, right) if start <= place < start + room else -1)
        window = context.index(max(context))
        h[len(before) + place] = each[window, len(before) + place - starts[window]]
    return h


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: "-".join(map(str, kind)))
@settings(deadline=None, max_examples=12)
@given(texts=st.lists(documents, min_size=1, max_size=4), at_once=st.integers(1, 5))
def test_the_fast_path_is_the_plain_one(
    kind: tuple[str, str, int], texts: list[str], at_once: int
) -> None:
    model = MODELS[kind]
    with torch.no_grad():
        encoded = model.encode(texts)
        state = classify_windows(model, **encoded.model_inputs(), at_once=at_once)
        again = model.classify(**encoded.model_inputs())
        mask = model.document_mask(**encoded.model_inputs())
        for row, text in enumerate(texts):
            length = int(encoded.attention_mask[row].sum())
            ids = encoded.input_ids[row, :length].tolist()
            s = plain_documents(
                model.lexical, plain_states(model, ids)[None], mask[row : row + 1, :length]
            )
            torch.testing.assert_close(state.sparse_vector[row], s[0], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(
                state.logits[row], plain_logits(model.head, s)[0], rtol=1e-4, atol=1e-4
            )
            alone = model.classify(**model.encode([text]).model_inputs())
            torch.testing.assert_close(state.logits[row], alone.logits[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(again.logits, state.logits, rtol=1e-4, atol=1e-4)
    check = verify_sum(state)
    assert bool((check.residual <= 1e-5 * check.scale).all())


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=15)
@given(texts=st.lists(documents, min_size=1, max_size=3))
def test_words_point_at_their_characters(family: str, texts: list[str]) -> None:
    """An opened word's place is a word of the text, and its logit is that of the token there."""
    model = MODELS[family, "shift", 0]
    for text, explanation in zip(texts, explain_many(model, texts), strict=True):
        assert not explanation.truncated
        total = sum(word.contribution for word in explanation.vocabulary) + explanation.bias
        assert total == pytest.approx(explanation.logit, abs=1e-3)
        for word in explanation.vocabulary:
            place = word.source
            assert text[place.start : place.end] == place.text
            assert place.text.strip()
        for scored in explanation.words:
            assert text[scored.start : scored.end] == scored.text
    encoded = model.encode(texts)
    with torch.no_grad():
        state = model.classify(**encoded.model_inputs())
        opened = state.open_words
        for row in range(len(texts)):
            here = opened.row == row
            length = int(encoded.attention_mask[row].sum())
            h = plain_states(model, encoded.input_ids[row, :length].tolist())
            at, word = opened.position[here], opened.word[here]
            z = (h[at] * model.lexical.weight[word]).sum(1) + model.lexical.bias[word]
            torch.testing.assert_close(opened.sources.logit[here], z, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_that_fit_are_read_as_ever_bit_by_bit(family: str) -> None:
    model = tiny_model(family, max_tokens=SIZE)
    texts = ["the film is lovely", "her music", "a small garden was bright."]
    plain = model.classify(**model.encode(texts).model_inputs())
    model.read_windows()
    in_windows = model.classify(**model.encode(texts).model_inputs())
    assert torch.equal(plain.logits, in_windows.logits)
    for name in ("row", "word", "value", "position"):
        assert torch.equal(getattr(plain.open_words, name), getattr(in_windows.open_words, name))
    mixed = model.classify(**model.encode([*texts, "the old house " * 30]).model_inputs())
    torch.testing.assert_close(mixed.logits[:3], plain.logits, rtol=1e-5, atol=1e-5)


@given(st.integers(0, 300), st.integers(1, 40))
def test_every_token_has_one_window_with_the_most_context(total: int, room: int) -> None:
    starts = window_starts(total, room)
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    owners = []
    for place in range(total):
        number, context = best_window(place, starts, room, total)
        assert starts[number] <= place < starts[number] + room
        assert context >= min(place, total - 1 - place, max(0, room // 8 - 1))
        owners.append(number)
    assert owners == sorted(owners)  # so ties between windows go to the first in the text
