"""Decisions of a batch: texts, or tagged words; sampled, and counted alike over several batches."""

from __future__ import annotations

import pytest
import torch

from lexical_sae.text.dataset import TextDataset
from lexical_sae.training.batching import Collate
from lexical_sae.training.decisions import decide, sample_rows
from lexical_sae.training.encoding import encode_dataset
from lexical_sae.training.objective import Objective
from lexical_sae.training.settings import Settings
from tests.tagged import TAGS, tagged_dataset, tiny_tagger

TAGGER = tiny_tagger()


def inputs(rows: list[int]) -> dict[str, torch.Tensor]:
    assert TAGGER.tokenizer is not None
    data = encode_dataset(TAGGER.tokenizer, tagged_dataset(20), 32, ())
    return Collate(int(TAGGER.tokenizer.pad_token_id))([data[i] for i in rows])


def objective(**settings: object) -> Objective:
    made = Objective(
        Settings.model_validate(settings), TAGGER.lexical, len(TAGS), steps_per_epoch=4, steps=8
    )
    return made


def test_a_word_is_decided_where_it_starts_and_nowhere_else() -> None:
    state, batch = decide(TAGGER, inputs([0, 1, 2]))
    data = tagged_dataset(20)
    assert batch.labels.tolist() == [tag for row in data.tags[:3] for tag in row]
    assert batch.index.tolist() == [i for i in range(3) for _ in data.tags[i]]
    assert len(set(batch.place.tolist())) == len(batch.labels)
    assert state.logits.shape == (len(batch.labels), len(TAGS))


def test_batches_of_one_step_count_by_their_words() -> None:
    made = objective()
    whole_state, whole = decide(TAGGER, inputs([0, 1, 2, 3, 4]))
    wanted = made(whole_state, whole).detach()
    parts = [decide(TAGGER, inputs(rows)) for rows in ([0], [1, 2, 3, 4])]
    usual = sum(len(batch.labels) for _, batch in parts) / 2
    losses = [made(state, batch, usual).detach() for state, batch in parts]
    assert float(sum(losses) / 2) == pytest.approx(float(wanted), rel=1e-5)
    alike = [made(state, batch).detach() for state, batch in parts]
    assert float(sum(alike) / 2) != pytest.approx(float(wanted), rel=1e-3)


def test_sentences_that_cannot_be_read_are_refused() -> None:
    data = TextDataset("odd", "train", "tagging", TAGS, tokens=[["\u200b"]], tags=[[0]])
    assert TAGGER.tokenizer is not None
    with pytest.raises(ValueError, match="None of the 1 sentences has a word"):
        encode_dataset(TAGGER.tokenizer, data, 32, ())


def test_the_terms_look_at_so_many_words() -> None:
    made = objective(sparsity={}, circuit_positions=7)
    state, batch = decide(TAGGER, inputs([0, 1, 2, 3]))
    sampled, fewer = made._sampled(state, batch)
    assert sampled.open_words.shape == (7,)
    assert len(fewer.labels) == len(fewer.place) == 7
    assert sample_rows(7, 7, torch.device("cpu")) is None
