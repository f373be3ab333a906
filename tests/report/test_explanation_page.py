"""The page of an explanation: escaped, without script or network, whole without its colours."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from lexical_sae import LexicalSAE, explain
from lexical_sae.certify.proofs import explain_with_proofs
from lexical_sae.report.explanation_page import explanation_page, signed
from tests.tiny import TEXTS, tiny_model

ATTACK = "film <script>alert(1)</script> \"><img src=x onerror=alert(2)> lovely & 'dull' {{7*7}}"


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model("bert")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    return parser


def test_a_hostile_text_is_only_text(model: LexicalSAE) -> None:
    page = explain(model, ATTACK).to_html()
    found = read(page)
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "img", "iframe", "object", "embed", "link", "form"}
    for _, attributes in found.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert "src" not in attributes
        assert "href" not in attributes
    shown = re.sub(r" \((for|against) the label, [+−][\d.]+\)", "", found.text)
    assert "".join(ATTACK.split()) in "".join(shown.split())


def test_nothing_is_fetched_and_the_style_is_the_one_that_is_named(model: LexicalSAE) -> None:
    page = explain(model, TEXTS[0]).to_html()
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page
    policy = dict(
        (a.get("http-equiv"), a.get("content")) for tag, a in read(page).tags if tag == "meta"
    )["Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    (css,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy


def test_the_page_shows_the_whole_sum(model: LexicalSAE) -> None:
    explanation = explain_with_proofs(model, TEXTS[:1], certify=True, flip=True)[0]
    found = read(explanation.to_html())
    for word in explanation.vocabulary[:20]:
        assert signed(word.contribution) in found.text
        assert word.word in found.text
    assert f"{explanation.logit:.4f}" in found.text
    assert signed(explanation.bias) in found.text
    assert "proved" in found.text
    assert {"main", "h1", "h2", "table", "caption", "th"} <= {tag for tag, _ in found.tags}
    assert found.text.count(explanation.model_hash) == 1


def test_marks_differ_by_more_than_colour(model: LexicalSAE) -> None:
    page = explain(model, TEXTS[0]).to_html()
    assert "underline solid" in page
    assert "underline wavy" in page
    marks = [a for tag, a in read(page).tags if tag == "mark"]
    assert marks
    assert all(re.match(r"[+−]\d", a["title"] or "") for a in marks)


def test_contrast_is_readable_in_light_and_dark(model: LexicalSAE) -> None:
    """WCAG AA, 4.5 to 1, for text on the paper and on every shade behind it."""
    (css,) = re.findall(r"<style>(.*?)</style>", explain(model, TEXTS[0]).to_html(), re.DOTALL)
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in css.split("@media")[:2]
    )

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, two: str) -> float:
        high, low = sorted((luminance(one), luminance(two)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for theme in (light, dark):
        for ink in ("ink", "soft", "for", "against"):
            assert contrast(theme[ink], theme["paper"]) >= 4.5, ink
        assert contrast(theme["ink"], theme["card"]) >= 4.5
        for side in ("for", "against"):
            for step in "123":
                assert contrast(theme["ink"], theme[f"{side}-{step}"]) >= 4.5, (side, step)


def test_the_terminal_shows_what_the_page_does(model: LexicalSAE) -> None:
    explanation = explain_with_proofs(model, TEXTS[:1], certify=True, flip=True)[0]
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(explanation)
    shown = console.export_text()
    assert explanation.label in shown
    assert explanation.vocabulary[0].word in shown
    assert f"= {explanation.logit:.4f}, the logit" in shown
    assert "bias" in shown
    fragment = explanation._repr_html_()
    assert fragment.count("<article") == 1
    assert ":root" not in fragment
    assert fragment.startswith('<div class="lexical-sae"><style>.lexical-sae {')
    assert fragment.count("{") - fragment.count("}") == 0


def test_no_explanations_no_page() -> None:
    with pytest.raises(ValueError, match="no explanations to show"):
        explanation_page([])


def test_a_real_browser_shows_it_and_refuses_nothing(model: LexicalSAE, tmp_path: Path) -> None:
    """The style is applied under the policy, the hostile text runs nothing, a phone needs no
    sideways scrolling."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    page = tmp_path / "page.html"
    page.write_text(explain(model, ATTACK).to_html(), encoding="utf-8")
    shot = tmp_path / "page.png"
    done = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *("--window-size=500,900", f"--screenshot={shot}", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # what a page logs, or is refused by its policy, is a CONSOLE line
    assert "CONSOLE" not in done.stderr, done.stderr
    assert shot.stat().st_size > 10_000  # not an empty page
