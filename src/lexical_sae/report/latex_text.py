"""Text for LaTeX in plain ASCII: pdflatex stops at most letters beyond it."""

from __future__ import annotations

import unicodedata

_TEXT = {
    **{"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_"},
    **{"{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    # at the start of a row LaTeX would take these as an option of the line break before it
    **{"[": "{[}", "]": "{]}", "*": "{*}"},
    **{"\n": " ", "\r": " ", "\t": " ", "\u00a0": "~"},
    **{"\u2010": "-", "\u2011": "-"},  # hyphens
    **{"–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "„": ",,", "…": r"\dots{}"},
    **{"ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ı": r"\i{}"},
    **{"ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "¡": "!`", "¿": "?`"},
    **{"§": r"\S{}", "¶": r"\P{}", "©": r"\copyright{}", "£": r"\pounds{}", "€": "EUR"},
    "▁": r"\_",
}
_MATH = (  # each sign, then what it is in formulas
    r"α\alpha β\beta γ\gamma δ\delta ε\epsilon ζ\zeta η\eta θ\theta ι\iota κ\kappa λ\lambda μ\mu "
    r"ν\nu ξ\xi οo π\pi ρ\rho ς\varsigma σ\sigma τ\tau υ\upsilon φ\phi χ\chi ψ\psi ω\omega "
    r"Γ\Gamma Δ\Delta Θ\Theta Λ\Lambda Ξ\Xi Π\Pi Σ\Sigma Υ\Upsilon Φ\Phi Ψ\Psi Ω\Omega "
    r"ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΧX "
    r"−- ×\times ·\cdot ±\pm ÷\div ⁄/ √\surd ≤\le ≥\ge ≠\ne ≈\approx ≡\equiv ∝\propto •\bullet "
    r"→\to ←\leftarrow ↔\leftrightarrow ⇒\Rightarrow ↑\uparrow ↓\downarrow ∞\infty ∂\partial "
    r"∇\nabla ∑\sum ∏\prod ∈\in ∉\notin ∩\cap ∪\cup ∅\emptyset ‖\| ⌈\lceil ⌉\rceil ⌊\lfloor "
    r"⌋\rfloor «\ll »\gg ‹< ›> °^\circ ⁻^{-} ₋_{-} ⁺^{+} ₊_{+} ⁿ^n "
    r"₀_0 ₁_1 ₂_2 ₃_3 ₄_4 ₅_5 ₆_6 ₇_7 ₈_8 ₉_9 ⁰^0 ¹^1 ²^2 ³^3 ⁴^4 ⁵^5 ⁶^6 ⁷^7 ⁸^8 ⁹^9"
)
_KNOWN = {**_TEXT, **{pair[0]: f"${pair[1:]}$" for pair in _MATH.split()}}
_ACCENTS = {  # combining marks
    **{"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u"},
    **{"\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d"},
    **{"\u0327": "c", "\u0331": "b"},
}


def latex_text(text: str) -> str:
    """The same in ASCII and commands that every LaTeX has; a letter that it has none for is named
    by its number."""
    return "".join(map(_latex, unicodedata.normalize("NFC", text)))


def _latex(letter: str) -> str:
    if letter in _KNOWN or " " <= letter <= "~":
        return _KNOWN.get(letter, letter)
    base, *marks = list(unicodedata.normalize("NFKD", letter))
    if base.isascii() and marks and all(mark in _ACCENTS for mark in marks):
        for mark in marks:
            base = rf"\{_ACCENTS[mark]}{{{base}}}"
        return base
    parts = [base, *marks]  # of a ligature, or a letter in another form
    if parts != [letter] and all(part in _KNOWN or " " <= part <= "~" for part in parts):
        return "".join(map(_latex, parts))
    return rf"\texttt{{U+{ord(letter):04X}}}"
