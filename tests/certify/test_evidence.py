"""Evidence policies and reason codes: exact shares, files that say what is wrong with them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from lexical_sae import LexicalSAE, explain, explain_many
from lexical_sae.certify.evidence import Evidence, WordGroup
from lexical_sae.certify.evidence_files import load_codes, load_policy
from lexical_sae.predicting import predict_texts
from lexical_sae.prediction_files import predict_file
from tests.text.conftest import write_columns
from tests.tiny import TEXTS, tiny_model

SOME = TEXTS[:25]


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert")


def test_shares_are_those_of_the_explanation(model: LexicalSAE) -> None:
    runners_up = [
        sorted(e.probabilities, key=lambda name, e=e: -e.probabilities[name])[1]
        for e in explain_many(model, SOME)
    ]
    explanations = [
        explain(model, text, against=u) for text, u in zip(SOME, runners_up, strict=True)
    ]
    names = sorted({w.word for e in explanations for w in e.vocabulary})
    one, two = names[: len(names) // 3], names[len(names) // 3 :]
    evidence = Evidence(
        model.dictionary,
        limits=[WordGroup("one", tuple(one), share=0.3)],
        codes=[WordGroup("A", tuple(one)), WordGroup("B", tuple(w.upper() for w in two))],
    )
    made = predict_texts(model, SOME, batch_size=7, evidence=evidence)
    assert evidence.unknown == ()
    broken = 0
    for explanation, judged in zip(explanations, made.judgements, strict=True):
        size = sum(abs(w.contribution) for w in explanation.vocabulary)
        held = sum(abs(w.contribution) for w in explanation.vocabulary if w.word in one) / size
        assert bool(judged.breaches) == (held > 0.3)
        for breach in judged.breaches:
            assert breach.share == pytest.approx(held, abs=1e-5)
            assert judged.reason == str(breach)
            assert "more than the 30 % allowed" in judged.reason
        broken += bool(judged.breaches)
        spoken = sum(max(w.contribution, 0) for w in explanation.vocabulary)
        if spoken:
            assert sum(code.share for code in judged.codes) == pytest.approx(1, abs=1e-5)
        shares = [code.share for code in judged.codes]
        assert shares == sorted(shares, reverse=True)
    assert 0 < broken < len(SOME)


def test_a_text_that_opens_nothing_breaks_nothing() -> None:
    model = tiny_model("bert")
    model.suppress(range(len(model.dictionary)))
    evidence = Evidence(model.dictionary, limits=[WordGroup("x", ("film",), share=0.0)])
    with torch.no_grad():
        state = model.classify(**model.encode(SOME[:2]).model_inputs())
    assert [judged.reason for judged in evidence.judge(state)] == ["", ""]


@pytest.fixture
def files(model: LexicalSAE, tmp_path: Path) -> tuple[Path, Path]:
    strongest = explain_many(model, SOME[:1])[0].vocabulary[0].word
    policy, codes = tmp_path / "policy.yaml", tmp_path / "codes.yaml"
    policy.write_text(f"limits:\n  strong:\n    words: ['{strongest}', nowhere]\n    share: 0\n")
    every = ", ".join(f"'{word}'" for word in model.dictionary.words)
    codes.write_text(f"codes:\n  R1:\n    description: all\n    words: [{every}]\n")
    return policy, codes


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_predicting_a_file_under_a_policy(
    model: LexicalSAE, files: tuple[Path, Path], tmp_path: Path, suffix: str
) -> None:
    source = write_columns(tmp_path / "in.csv", {"text": SOME})
    output = tmp_path / f"out{suffix}"
    summary = predict_file(model, source, output, policy=files[0], codes=files[1])
    assert 1 <= summary.abstained <= len(SOME)
    assert any("never open: nowhere" in note for note in summary.notes)
    if suffix == ".csv":
        with output.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows[0]["reason_codes"] == "R1 1.0000"
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        assert rows[0]["reason_codes"] == [{"code": "R1", "share": pytest.approx(1.0)}]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(output).to_pylist()
        assert rows[0]["reason_codes"][0]["code"] == "R1"
    assert rows[0]["predicted_label"] == "abstain"
    assert rows[0]["abstain_reason"].startswith("strong carries ")
    assert sum(row["predicted_label"] == "abstain" for row in rows) == summary.abstained
    assert all((row["predicted_label"] == "abstain") == bool(row["abstain_reason"]) for row in rows)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[1, 2]", "holds no mapping"),
        ("limit:\n  a: 1", r"unknown key 'limit'; did you mean 'limits'\?"),
        ("limits:", "limits is empty"),
        ("limits:\n  a: 3", r"limits\.a is no mapping"),
        (
            "limits:\n  a:\n    word: [x]\n    share: 0.1",
            r"unknown key 'word'; did you mean 'words'",
        ),
        ("limits:\n  a:\n    words: x\n    share: 0.1", "words is 'x'; expected a list"),
        ("limits:\n  a:\n    words: [1]\n    share: 0.1", "1 is no word; expected text"),
        ("limits:\n  a:\n    words: [x]", "share is None; expected a number from 0"),
        ("limits:\n  a:\n    words: [x]\n    share: 10 %", "share is '10 %'"),
        ("limits:\n  a:\n    words: [x]\n    share: 1", "expected a number from 0 to below 1"),
        ("limits:\n  a: [\n", "is not valid YAML: line"),
    ],
)
def test_bad_policies_are_refused(tmp_path: Path, text: str, match: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=match):
        load_policy(file)


def test_bad_code_files_are_refused(tmp_path: Path, model: LexicalSAE) -> None:
    with pytest.raises(ValueError, match="was not found"):
        load_codes(tmp_path / "no.yaml")
    file = tmp_path / "codes.yaml"
    file.write_text("codes:\n  A: {words: [film]}\n  B: {words: [Film]}\n")
    with pytest.raises(ValueError, match="'Film' is in A and in B; expected one code per word"):
        load_codes(file)
    file.write_bytes(b"\xff\xfe\x00codes")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        load_codes(file)
    file.write_text("limits:\n  a: {words: [film], share: 0.1}\n")
    abstaining = tiny_model("bert", labels=["abstain", "other", "third"])
    with pytest.raises(ValueError, match="has a label 'abstain'"):
        predict_file(
            abstaining,
            write_columns(tmp_path / "in.csv", {"text": SOME}),
            tmp_path / "out.csv",
            policy=file,
        )
