"""`explain`, `diff` and `predict --policy` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.command_line import run, run_process
from tests.text.conftest import write_columns
from tests.tiny import TEXTS, tiny_model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_model("bert").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    model = tiny_model("bert")
    with torch.no_grad():
        model.head.W1.mul_(1.2)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_columns(tmp_path_factory.mktemp("data") / "texts.csv", {"text": TEXTS[:12]})


def test_explain_in_the_terminal(saved: Path) -> None:
    attack = "her music is [bold]dull[/bold]"
    text, _ = run_process("explain", str(saved), TEXTS[0], attack, "--certify")
    assert "opened by" in text
    assert text.count("the logit (off by") == 2
    assert "[bold]dull[/bold]" in text


def test_explain_as_json(saved: Path) -> None:
    text, _ = run("explain", str(saved), TEXTS[0], TEXTS[1], "--json", "--certify", "--flip")
    for line in text.splitlines():
        found = json.loads(line)
        for view in ("words", "vocabulary"):
            total = sum(part["contribution"] for part in found[view]) + found["bias"]
            assert total == pytest.approx(found["logit"], abs=1e-4)
        assert isinstance(found["flip"]["optimal"], bool)
        assert isinstance(found["flip"]["words"], list)
        assert isinstance(found["sufficient"], list)
    assert len(text.splitlines()) == 2


def test_explain_a_file_as_a_page(saved: Path, texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text, _ = run("explain", str(saved), "--input", str(texts), "--html", str(page))
    assert "12 explanations written to" in text
    assert page.read_text().count("<article") == 12
    _, error = run("explain", str(saved), TEXTS[0], "--html", str(page), code=2)
    assert "exists; choose another file, or pass --overwrite" in error
    run("explain", str(saved), TEXTS[0], "--html", str(page), "--overwrite")
    assert page.read_text().count("<article") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give texts or --input FILE"),
        (["a text", "--input", "x.csv"], "Give texts or --input FILE"),
        (["a text", "--label", "nagative"], "did you mean 'negative'"),
        (["a text", "--json", "--html", "x.html"], "Give --json or --html, not both"),
        (["a text", "--html", "no/such/page.html"], "is not a folder"),
        (["--input", "missing.csv"], "was not found"),
        ([" "], "expected a text that is not empty"),
        (["a text", "--flip", "--time-limit", "0"], "--time-limit is 0.0; expected seconds"),
        (["a text", "--method", "lime"], "method is 'lime'; expected one of"),
    ],
)
def test_bad_requests_to_explain(saved: Path, arguments: list[str], message: str) -> None:
    _, error = run("explain", str(saved), *arguments, code=2)
    assert message in error
    assert error.count("\n") <= 1


def test_overview(saved: Path, texts: Path) -> None:
    text, _ = run("overview", str(saved), "--input", str(texts), "--top", "3")
    assert "linear regions:" in text
    assert "e.g. " in text
    found = json.loads(run("overview", str(saved), "--input", str(texts), "--json")[0])
    assert sum(view["texts"] for view in found["classes"]) == 12
    assert found["atlas"]["texts"] == 12


def test_diff(saved: Path, changed: Path, texts: Path) -> None:
    text, _ = run("diff", str(saved), str(changed), "--input", str(texts))
    assert "12 texts" in text
    assert "of the reasons moved" in text
    text, _ = run("diff", str(saved), str(saved), "--input", str(texts), "--fail-over", "0")
    assert "0.0 % of the reasons moved" in text
    arguments = ("diff", str(saved), str(changed), "--input", str(texts))
    text, _ = run(*arguments, "--fail-over", "0.01", code=1)
    assert "failed:" in text
    text, _ = run(*arguments, "--json", "--fail-over", "0.01", code=1)
    found = json.loads(text)
    assert found["largest_residual"] < 1e-4
    assert len(found["each"]) == 12
    _, error = run(*arguments, "--fail-over", "7", code=2)
    assert "expected a share from 0 to 1" in error


def test_predict_under_a_policy(saved: Path, texts: Path, tmp_path: Path) -> None:
    policy, output = tmp_path / "policy.yaml", tmp_path / "out.jsonl"
    words = ", ".join(f"'{word}'" for word in tiny_model("bert").dictionary.words)
    policy.write_text(f"limits:\n  everything:\n    words: [{words}]\n    share: 0.5\n")
    arguments = ("predict", str(saved), "--input", str(texts), "--output", str(output))
    text, _ = run(*arguments, "--policy", str(policy))
    assert "12 of them abstain, by the policy" in text
    first = json.loads(output.read_text().splitlines()[0])
    assert first["predicted_label"] == "abstain"
    assert "everything carries 100.0 % of the evidence" in first["abstain_reason"]
    _, error = run(*arguments, "--overwrite", "--codes", str(policy), code=2)
    assert "unknown key 'limits'" in error
