"""Text for LaTeX: nothing is left that pdflatex would stop at."""

from __future__ import annotations

import pytest

from lexical_sae.report.finding import FindingTable
from lexical_sae.report.latex_text import latex_text
from lexical_sae.report.tables import latex

SIGNS = {
    **{"κ": r"$\kappa$", "σ": r"$\sigma$", "θ": r"$\theta$", "λ": r"$\lambda$", "τ": r"$\tau$"},
    **{"δ": r"$\delta$", "ε": r"$\epsilon$", "Σ": r"$\Sigma$", "Δ": r"$\Delta$", "Α": "$A$"},
    **{"→": r"$\to$", "←": r"$\leftarrow$", "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$"},
    **{"−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "√": r"$\surd$", "∂": r"$\partial$"},
    **{"∈": r"$\in$", "∇": r"$\nabla$", "±": r"$\pm$", "≈": r"$\approx$", "‖": r"$\|$"},
    **{letter: f"$_{n}$" for n, letter in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{letter: f"$^{n}$" for n, letter in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{"⁻": "$^{-}$", "ⁿ": "$^n$", "½": "1$/$2", "–": "--", "—": "---", "…": r"\dots{}"},
    **{"’": "'", "“": "``", "”": "''", "«": r"$\ll$", "▁": r"\_", "\u00a0": "~", "ﬁ": "fi"},
    **{
        "é": r"\'{e}",
        "ö": r"\"{o}",
        "Ġ": r"\.{G}",
        "ŵ": r"\^{w}",
        "ǖ": r"\={\"{u}}",
        "ß": r"\ss{}",
    },
    **{"&": r"\&", "%": r"\%", "_": r"\_", "\\": r"\textbackslash{}", "<": r"\textless{}"},
    **{"你": r"\texttt{U+4F60}", "😀": r"\texttt{U+1F600}", "\u200b": r"\texttt{U+200B}"},
}


@pytest.mark.parametrize("letter", SIGNS)
def test_each_sign_has_its_command(letter: str) -> None:
    assert latex_text(letter) == SIGNS[letter]
    assert latex_text(f"a{letter}b").isascii()


def test_every_letter_there_is_comes_out_in_ascii() -> None:
    for number in (*range(0x3000), *range(0xFF00, 0xFFF0)):
        found = latex_text(chr(number))
        assert found.isascii(), hex(number)
        assert found.count("{") - found.count(r"\{") == found.count("}") - found.count(r"\}")
        assert (found.count("$") - found.count(r"\$")) % 2 == 0


def test_a_table_is_in_ascii_and_no_row_begins_with_an_option() -> None:
    table = FindingTable("κ at 10 %", ("cold₂", "θ → 2·θ"), (("[CLS]", -0.5), ("*", "≤ 3")))
    found = latex([table])
    assert found.isascii()
    assert r"\caption{$\kappa$ at 10 \%}" in found
    assert r"cold$_2$ & $\theta$ $\to$ 2$\cdot$$\theta$ \\" in found
    assert "{[}CLS{]} & -0.5" in found
    assert "{*} & $\\le$ 3" in found
