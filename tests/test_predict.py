"""Predictions for texts and for files: every format both ways, bad rows, and nothing half done."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexical_sae import LexicalSAE, prediction_jobs
from lexical_sae.predicting import predict_texts
from lexical_sae.prediction_files import predict_file, windows
from lexical_sae.runs import load_run, model_folder_of
from lexical_sae.text import DataError
from lexical_sae.text.rows import Row
from tests.command_line import run
from tests.text.conftest import write_columns
from tests.tiny import TEXTS, tiny_model

FORMATS = [".csv", ".tsv", ".jsonl", ".parquet"]
LABELS = ["negative", "neutral", "positive"]
SOME = [*TEXTS[:20], 'the "film", 日本\n🙂\tis lovely', "!!!", "film " * 100, *TEXTS[30:40]]


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert")


@pytest.fixture(scope="module")
def saved(model: LexicalSAE, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    model.save_pretrained(run / "model")
    return run


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return [json.loads(line) for line in lines]
    delimiter = "," if path.suffix == ".csv" else "\t"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter, strict=True))


def shares(row: dict[str, Any]) -> list[float]:
    if "probabilities" in row:
        assert list(row["probabilities"]) == LABELS
        return list(row["probabilities"].values())
    return [float(row[f"p_{label}"]) for label in LABELS]


# -- texts -----------------------------------------------------------------------------------------


def test_predictions_are_those_of_classify_one_by_one(model: LexicalSAE) -> None:
    made = predict_texts(model, SOME, batch_size=4)
    assert made.probabilities.dtype == np.float64
    np.testing.assert_allclose(made.probabilities.sum(axis=1), 1, rtol=0, atol=1e-15)
    for i, text in enumerate(SOME):
        encoded = model.encode([text])
        with torch.no_grad():
            state = model.eval().classify(**encoded.model_inputs())
        expected = state.logits.double().softmax(-1)[0].numpy()
        np.testing.assert_allclose(made.probabilities[i], expected, atol=1e-5)
        assert made.labels[i] == LABELS[int(state.predicted)]
        assert made.open_words[i] == int(state.open_words.counts())
        assert made.truncated[i] == encoded.truncated[0]
    assert made.truncated.sum() == 1


def test_mode_and_gradients_are_left_alone(model: LexicalSAE) -> None:
    model.train()
    try:
        first = predict_texts(model, SOME)
        assert model.training
        np.testing.assert_array_equal(first.probabilities, predict_texts(model, SOME).probabilities)
    finally:
        model.eval()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("text", ["!!!", "🙂", "\u200b", "日本", "\x00"])
def test_texts_without_a_word_are_predicted(model: LexicalSAE, text: str) -> None:
    made = predict_texts(model, [text, TEXTS[0]])
    assert np.isfinite(made.probabilities).all()


def test_texts_that_are_refused(model: LexicalSAE) -> None:
    with pytest.raises(ValueError, match=r"texts\[1\] is ' \\n'; expected a text"):
        predict_texts(model, ["a", " \n"])
    with pytest.raises(ValueError, match="texts is empty"):
        predict_texts(model, [])
    with pytest.raises(ValueError, match="texts is one string"):
        predict_texts(model, "text")
    with pytest.raises(ValueError, match="batch_size is 0"):
        predict_texts(model, ["a"], batch_size=0)
    with pytest.raises(ValueError, match="for tagging; predict_texts is for classifiers"):
        predict_texts(tiny_model("bert", task="tagging", labels=["O", "B-X", "I-X"]), ["a"])


def test_damaged_weights_are_told() -> None:
    broken = tiny_model("bert")
    with torch.no_grad():
        for parameter in broken.head.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(ValueError, match="logits are not all finite numbers"):
        predict_texts(broken, TEXTS[:2])


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("into", FORMATS)
@pytest.mark.parametrize("out_of", FORMATS)
def test_every_format_into_every_format(
    model: LexicalSAE, tmp_path: Path, out_of: str, into: str
) -> None:
    ids = [str(i) for i in range(len(SOME))]
    columns = {"id": ids, "text": SOME, "é, ü": ["x"] * len(SOME)}
    source = write_columns(tmp_path / f"in{out_of}", columns)
    target = tmp_path / f"out{into}"
    summary = predict_file(model, source, target, batch_size=2)  # a window is shorter than the file
    made = predict_texts(model, SOME)
    rows = read(target)
    assert [row["id"] for row in rows] == ids
    assert [row["text"] for row in rows] == SOME
    assert {row["é, ü"] for row in rows} == {"x"}
    assert [row["predicted_label"] for row in rows] == list(made.labels)
    assert [int(row["open_words"]) for row in rows] == made.open_words.tolist()
    for row, expected in zip(rows, made.probabilities, strict=True):
        np.testing.assert_allclose(shares(row), expected, atol=1e-5)
        assert sum(shares(row)) == pytest.approx(1, abs=1e-12)
        assert float(row["probability"]) == max(shares(row))
    assert (summary.rows, summary.predicted, summary.skipped) == (len(SOME), len(SOME), 0)
    assert summary.open_words == pytest.approx(made.open_words.mean())
    assert summary.truncated == 1
    assert summary.seconds > 0
    assert json.dumps(summary.to_dict())
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, target.name]


def test_parquet_types_are_kept(model: LexicalSAE, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "text": pa.array(TEXTS[:3]).dictionary_encode(),
            "small": pa.array([1, None, 3], pa.int8()),
            "when": pa.array([0, 1, 2], pa.timestamp("us", tz="UTC")),
            "list": pa.array([[1], [], None], pa.list_(pa.int32())),
            "raw": pa.array([b"\xff", b"", None], pa.binary()),
            "share": pa.array([0.5, float("nan"), None], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    predict_file(model, tmp_path / "x.parquet", tmp_path / "y.parquet")
    made = pq.read_table(tmp_path / "y.parquet")
    for field in table.schema:
        assert made.schema.field(field.name).type == field.type
        assert str(made.column(field.name).to_pylist()) == str(table.column(field.name).to_pylist())
    predict_file(model, tmp_path / "x.parquet", tmp_path / "y.jsonl")
    first, second, _ = read(tmp_path / "y.jsonl")
    assert (first["when"], first["list"], first["raw"]) == (
        "1970-01-01T00:00:00+00:00",
        [1],
        "/w==",
    )
    assert (second["small"], second["share"]) == (None, None)
    predict_file(model, tmp_path / "x.parquet", tmp_path / "y.csv")
    first, second, _ = read(tmp_path / "y.csv")
    assert (first["small"], first["list"], second["small"], second["share"]) == (
        *("1", "[1]", ""),
        "nan",
    )


def test_ragged_json_into_tables(model: LexicalSAE, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": TEXTS[0], "n": 1, "mixed": 1, "deep": {"a": [1]}},
        {"text": TEXTS[1], "n": 2.5, "mixed": "x", "late": True},
    ]
    source = tmp_path / "x.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)))
    predict_file(model, source, tmp_path / "y.parquet")
    first, second = read(tmp_path / "y.parquet")
    assert (first["n"], first["mixed"], first["deep"], first["late"]) == (
        1.0,
        "1",
        '{"a": [1]}',
        None,
    )
    assert (second["n"], second["mixed"], second["deep"], second["late"]) == (2.5, "x", None, True)
    predict_file(model, source, tmp_path / "y.csv")
    first, second = read(tmp_path / "y.csv")
    assert (first["deep"], first["late"], second["late"]) == ('{"a": [1]}', "", "true")
    predict_file(model, source, tmp_path / "y.jsonl")
    assert "late" not in read(tmp_path / "y.jsonl")[0]


def test_lone_carriage_returns_survive_in_csv(model: LexicalSAE, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps({"text": "old\rmac\r\nwindows"}))
    predict_file(model, source, tmp_path / "y.csv")
    assert read(tmp_path / "y.csv")[0]["text"] == "old\rmac\r\nwindows"


def test_many_labels_get_no_columns_in_csv(tmp_path: Path) -> None:
    many = tiny_model("bert", labels=[f"class {i}" for i in range(21)])
    source = write_columns(tmp_path / "x.csv", {"text": TEXTS[:2]})
    predict_file(many, source, tmp_path / "y.csv")
    added = ["predicted_label", "probability", "open_words"]
    assert list(read(tmp_path / "y.csv")[0]) == ["text", *added]
    predict_file(many, source, tmp_path / "y.jsonl")
    assert len(read(tmp_path / "y.jsonl")[0]["probabilities"]) == 21


def test_bad_rows_are_refused_or_skipped(model: LexicalSAE, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text(f'text,id\n"{TEXTS[0]}\nmore",1\n,2\n{TEXTS[1]},3\na,b,c\n{TEXTS[2]},5\n')
    target = tmp_path / "y.jsonl"
    message = r"x\.csv, row 2 \(line 4\): the text .* is empty; 2 of the 5 rows .* --skip-bad"
    with pytest.raises(DataError, match=message):
        predict_file(model, source, target)
    assert list(tmp_path.iterdir()) == [source]
    summary = predict_file(model, source, target, skip_bad=True)
    assert [row["id"] for row in read(target)] == ["1", "3", "5"]
    assert (summary.rows, summary.predicted, summary.skipped) == (5, 3, 2)
    assert [(bad.number, bad.line) for bad in summary.first_skipped] == [(2, 4), (4, 6)]
    source.write_text("text,id\n ,1\n,2\n")
    with pytest.raises(DataError, match="none of the 2 rows can be used"):
        predict_file(model, source, tmp_path / "z.csv", skip_bad=True)


def test_whole_windows_of_bad_rows(model: LexicalSAE, tmp_path: Path) -> None:
    texts = [TEXTS[0], *[" "] * 100, TEXTS[1]]
    source = write_columns(tmp_path / "x.csv", {"id": list(range(102)), "text": texts})
    summary = predict_file(model, source, tmp_path / "y.csv", skip_bad=True, batch_size=1)
    assert (summary.predicted, summary.skipped, len(summary.first_skipped)) == (2, 100, 20)
    assert [row["id"] for row in read(tmp_path / "y.csv")] == ["0", "101"]


@pytest.mark.parametrize("into", FORMATS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_leaves_nothing(
    model: LexicalSAE,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    into: str,
    error: type[BaseException],
) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": TEXTS[:100]})
    kept = tmp_path / f"kept{into}"
    kept.write_text("of before")
    classify, calls = model.classify, []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) > 40:  # some windows are already written
            raise error
        return classify(*args, **kwargs)

    monkeypatch.setattr(model, "classify", interrupted)
    for target in (tmp_path / f"new{into}", kept):
        calls.clear()
        with pytest.raises(error):
            predict_file(model, source, target, batch_size=1, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [kept.name, "x.csv"]
    assert kept.read_text() == "of before"


def test_only_a_window_is_read_ahead(
    model: LexicalSAE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_rows = 0

    def counted() -> Iterator[Row]:
        nonlocal read_rows
        for number in range(1, 1001):
            read_rows += 1
            yield Row(number, None, {})

    parts = windows(counted(), 64)
    assert len(next(parts)) == 64
    assert read_rows == 64
    assert sum(map(len, parts)) == 1000 - 64

    source = write_columns(tmp_path / "x.csv", {"text": TEXTS[:50]})
    sizes: list[int] = []
    original: Callable[..., Any] = prediction_jobs.predict_texts

    def watched(model: LexicalSAE, texts: list[str], *rest: Any) -> Any:
        sizes.append(len(texts))
        return original(model, texts, *rest)

    monkeypatch.setattr(prediction_jobs, "predict_texts", watched)
    done: list[tuple[int, int]] = []
    predict_file(
        model, source, tmp_path / "y.csv", batch_size=1, progress=lambda *at: done.append(at)
    )
    assert sizes == [16, 16, 16, 2]
    assert done == [(0, 50), (16, 50), (32, 50), (48, 50), (50, 50)]


def test_a_file_that_changes_meanwhile_is_refused(model: LexicalSAE, tmp_path: Path) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": TEXTS[:5]})

    def change(done: int, total: int) -> None:
        with source.open("a") as file:
            file.write("one more\n")

    with pytest.raises(DataError, match="was changed while it was read"):
        predict_file(model, source, tmp_path / "y.csv", progress=change)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("column", "into"),
    [
        *(("predicted_label", into) for into in FORMATS),
        *(("p_neutral", ".csv"), ("probabilities", ".parquet"), ("open_words", ".jsonl")),
    ],
)
def test_names_that_are_taken(model: LexicalSAE, tmp_path: Path, column: str, into: str) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": ["a"], column: ["b"]})
    with pytest.raises(DataError, match=f"already has a column '{column}'.*; rename it"):
        predict_file(model, source, tmp_path / f"y{into}")


def test_names_that_only_another_format_takes(model: LexicalSAE, tmp_path: Path) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": ["a"], "p_neutral": ["b"]})
    predict_file(model, source, tmp_path / "y.jsonl")
    assert read(tmp_path / "y.jsonl")[0]["p_neutral"] == "b"


def test_outputs_that_are_refused(model: LexicalSAE, tmp_path: Path) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": ["a film"]})
    os.link(source, tmp_path / "same.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "there.csv").write_text("of before")
    for name, message in (
        ("x.csv", "both the input and the output"),
        ("same.csv", "both the input and the output"),
        ("folder.csv", "exists; choose another output"),
        ("there.csv", "exists; choose another output, or pass --overwrite"),
        ("no/y.csv", "is not a folder"),
        ("y.json", r"ends in '\.json'; the output must end in one of"),
    ):
        with pytest.raises(DataError, match=message):
            predict_file(model, source, tmp_path / name, overwrite=name in ("x.csv", "folder.csv"))
    assert (tmp_path / "there.csv").read_text() == "of before"
    predict_file(model, source, tmp_path / "there.csv", overwrite=True)
    assert read(tmp_path / "there.csv")[0]["text"] == "a film"


@pytest.mark.skipif(sys.platform == "win32", reason="rights are other there")
def test_the_output_has_ordinary_rights(model: LexicalSAE, tmp_path: Path) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": ["a film"]})
    for into in FORMATS:
        predict_file(model, source, tmp_path / f"y{into}")
        assert (tmp_path / f"y{into}").stat().st_mode == source.stat().st_mode


# -- runs and the command --------------------------------------------------------------------------


def test_the_folder_of_a_run_or_of_a_model(saved: Path, tmp_path: Path) -> None:
    assert model_folder_of(saved) == model_folder_of(saved / "model") == saved / "model"
    assert load_run(saved).config.labels == LABELS
    for folder, message in (
        (tmp_path, "holds neither; expected the folder of a run"),
        (tmp_path / "no", "was not found; expected"),
        (saved / "model" / "config.json", "is a file; expected"),
    ):
        with pytest.raises(ValueError, match=message):
            model_folder_of(folder)


def test_the_command(saved: Path, tmp_path: Path) -> None:
    texts = [*TEXTS[:10], *[""] * 7]
    ids = list(range(17))
    source = write_columns(tmp_path / "x.csv", {"id": ids, "review": texts, "[b]x": ids})
    target = tmp_path / "y.parquet"
    _, error = run("predict", saved, "--input", source, "--output", target, code=2)
    assert error.startswith("Error: ")
    assert "row 11 (line 12): the text (column 'review') is empty; 7 of the 17 rows" in error
    assert list(tmp_path.iterdir()) == [source]
    text, error = run("predict", saved, "--input", source, "--output", target, "--skip-bad")
    assert error == ""
    assert "note: column 'review' taken as the text" in text
    assert "skipped row 11 (line 12): the text (column 'review') is empty" in text
    assert "skipped 2 more" in text
    assert "10 rows predicted, 7 skipped" in text
    assert text.endswith(f"saved to {target}\n")
    assert [row["id"] for row in read(target)] == [str(i) for i in ids[:10]]


def test_the_command_refuses_with_one_sentence(saved: Path, tmp_path: Path) -> None:
    source = write_columns(tmp_path / "x.csv", {"text": TEXTS[:2], "other": TEXTS[:2]})
    target = tmp_path / "y.csv"
    for arguments, message in (
        ([saved, "--input", tmp_path / "no.csv", "--output", target], "no.csv was not found"),
        ([saved, "--input", source, "--output", tmp_path / "y.txt"], "ends in '.txt'"),
        ([tmp_path / "no", "--input", source, "--output", target], "no was not found; expected"),
        (
            [saved, "--input", source, "--output", target, "--text-column", "txt"],
            "did you mean 'text'?",
        ),
    ):
        _, error = run("predict", *arguments, code=2)
        assert error.startswith("Error: ")
        assert message in error
        assert len(error.strip().splitlines()) == 1
    assert not target.exists()
