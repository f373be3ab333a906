"""The curves of a run, drawn from its history."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexical_sae.report.series import History, Series, series, smoothed, warmup_end
from lexical_sae.text.write_rows import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERMS = (
    *("completeness", "separation", "sharpness", "sparsity"),
    *("frequency", "anchor", "content", "distillation"),
)
# Okabe and Ito's colours, told apart by every kind of eye; a grey for their yellow, pale on white
BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY = (
    *("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#888888"),
)
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY)
WIDTH, DPI = 8.0, 150  # inches and dots per inch: 1,200 pixels
FEW = 12  # points, up to which each is marked
SMALL = 5.0  # terms above it get a scale that is logarithmic from 1 on
SUFFIXES = (".png", ".svg")


def draw_curves(
    history: History, output: str | Path, title: str, *, target_words: float | None = None
) -> Path:
    """The history of a run (`read_history`) as a picture, .png or .svg by the ending of `output`.

    Only panels for which there is something are drawn: a dense model has CE and accuracy. A history
    without any of them, as of a run that ended before its first log, is a `ValueError`.
    """
    output = Path(output)
    if output.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{output.name} must end in {' or '.join(SUFFIXES)}.")
    panels = _panels(history, target_words)
    if not panels:
        raise ValueError("The history holds no losses and no evaluations, so there is no curve.")
    try:  # no pyplot: it would choose a backend and keep figures for the whole process
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise ImportError(
            "Curves need matplotlib, which is not installed; run pip install "
            '"lexical-sae[training]".'
        ) from None
    figure = Figure(
        figsize=(WIDTH, 0.9 + 1.75 * len(panels)), dpi=DPI, layout="constrained", facecolor="white"
    )
    # parse_math: a dollar sign in a name is no formula
    figure.suptitle(textwrap.fill(title, 80), fontsize=12, parse_math=False)
    axes = list(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
    for axis, draw in zip(axes, panels, strict=True):
        draw(axis)
        _finish(axis)
    _shade_warmup(axes, history)
    last = max(record["step"] for record in history)
    axes[-1].set_xlim(0, max(1, last) * 1.01)
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].set_xlabel("step")
    figure.align_ylabels(axes)
    suffix = output.suffix.lower().removeprefix(".")
    with replacing(output) as scratch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a title in any script
        # no date: the same history gives the same picture
        metadata = {"Date": None} if suffix == "svg" else {}
        figure.savefig(scratch, format=suffix, metadata=metadata)
    return output


def _panels(history: History, target_words: float | None) -> list[Callable[[Axes], None]]:
    """A function per panel that has data; each draws into the axes that it is given."""
    ce, bound, eval_ce = (series(history, key) for key in ("ce", "bound", "eval_ce"))
    if not ce:
        ce = series(history, "loss")
    terms = {name: found for name in TERMS if (found := series(history, name))}
    opened, eval_opened = (series(history, key) for key in ("open_words", "eval_open_words"))
    multiplier = series(history, "multiplier")
    shares = {
        "accuracy": series(history, "eval_accuracy"),
        "F1 of entities": series(history, "eval_f1"),
        "circuit agreement": series(history, "eval_circuit_agreement"),
    }

    def draw_ce(axis: Axes) -> None:
        axis.set_ylabel("cross-entropy")
        _line(axis, ce, "training", BLUE)
        _line(axis, bound, "bound τ", BLACK, noisy=False, linestyle="--", linewidth=1.2)
        _points(axis, eval_ce, "validation", RED)
        axis.set_ylim(bottom=0)

    def draw_terms(axis: Axes) -> None:
        axis.set_ylabel("circuit terms")
        for name, found in terms.items():
            _line(axis, found, name, COLOURS[TERMS.index(name)])
        values = [value for found in terms.values() for _, value in found]
        if max(values) > SMALL:  # an L1 or FLOPS term can be hundreds of times the others
            axis.set_yscale("symlog", linthresh=1)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_ylim(bottom=min(0.0, *values))

    def draw_words(axis: Axes) -> None:
        axis.set_ylabel("open words")
        _line(axis, opened, "training", BLUE)
        _points(axis, eval_opened, "validation", RED)
        if target_words is not None:
            axis.axhline(target_words, label="target", color=BLACK, linestyle="--", linewidth=1.2)
        axis.set_ylim(bottom=0)

    def draw_multiplier(axis: Axes) -> None:
        axis.set_ylabel("multiplier λ")
        _log_scale(axis, [value for _, value in multiplier])
        _line(axis, multiplier, "λ", GREEN, noisy=False)

    def draw_shares(axis: Axes) -> None:
        axis.set_ylabel("validation, %")
        for (name, found), colour in zip(shares.items(), (RED, GREEN, SKY), strict=True):
            _points(axis, [(step, 100 * share) for step, share in found], name, colour, "o-")

    drawn: list[tuple[Callable[[Axes], None], list[Series]]] = [
        (draw_ce, [ce, eval_ce]),
        (draw_terms, list(terms.values())),
        (draw_words, [opened, eval_opened]),
        (draw_multiplier, [multiplier]),
        (draw_shares, list(shares.values())),
    ]
    return [draw for draw, shown in drawn if any(shown)]


def _line(
    axis: Axes, found: Series, label: str, colour: str, *, noisy: bool = True, **style: Any
) -> None:
    """A curve; where it is long and noisy its running mean, with the curve itself pale behind."""
    if not found:
        return
    steps, values = zip(*found, strict=True)
    style = {"linewidth": 1.6, "color": colour, **style}
    if len(found) <= FEW:
        style["marker"] = "."
    mean = smoothed(values) if noisy else None
    if mean is not None:
        axis.plot(steps, values, color=colour, alpha=0.25, linewidth=0.8)
    axis.plot(steps, values if mean is None else mean, label=label, **style)


def _points(axis: Axes, found: Series, label: str, colour: str, form: str = "o") -> None:
    if found:
        steps, values = zip(*found, strict=True)
        style: dict[str, Any] = {"markersize": 4.5, "linewidth": 0.9, "clip_on": False}
        axis.plot(steps, values, form, label=label, color=colour, **style)


def _log_scale(axis: Axes, values: Sequence[float]) -> None:
    """Ticks at 1, 2, 5, 10, ... and always some of them: λ may stay near 1 for a whole run."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = min(values) / 1.2, max(values) * 1.2
    wider = max(1.0, (6 / (high / low)) ** 0.5)
    axis.set_yscale("log")
    axis.set_ylim(low / wider, high * wider)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _finish(axis: Axes) -> None:
    axis.set_facecolor("white")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axis.tick_params(labelsize=8)
    axis.yaxis.label.set_fontsize(9)
    axis.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, frameon=False, fontsize=8
    )


def _shade_warmup(axes: Sequence[Axes], history: History) -> None:
    end = warmup_end(history)
    if end is None:
        return
    for axis in axes:
        axis.axvspan(0, end, color="#EEEEEE", zorder=0, linewidth=0)
    axes[0].annotate(
        "warm-up",
        (0, 1),
        xycoords=("data", "axes fraction"),
        xytext=(4, 2),
        textcoords="offset points",
        fontsize=8,
        color="#555555",
    )
