"""``lexical-sae certify`` and ``verify``: a removal certificate, made and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexical_sae.commands.console import plain

if TYPE_CHECKING:
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text.dataset import TextDataset

Data = Annotated[
    str | None, typer.Option(help="Name, file, folder or hub:NAME; default the run's own.")
]


def certify(
    run: Annotated[Path, typer.Argument(help="Run or model with words cut out.")],
    output: Annotated[Path, typer.Option(help="File of the certificate, for instance cert.json.")],
    data: Data = None,
    split: Annotated[str, typer.Option(help="Split to measure on.")] = "test",
    sign: Annotated[
        Path | None, typer.Option(help="PEM file with an ed25519 private key to sign with.")
    ] = None,
) -> None:
    """Certify a cut: what is gone, that it cannot matter, what that does, what still leaks."""
    from lexical_sae.runs import load_run
    from lexical_sae.surgery.certificate import certify_removal
    from lexical_sae.surgery.signing import private_key, signed
    from lexical_sae.training.environment import write_json

    if output.exists():
        raise ValueError(f"{output} exists; choose another --output or remove it.")
    if sign is not None:
        private_key(sign)  # a bad key is found before anything is measured
    model = load_run(run)
    test, train = _data(run, model, data, split)
    with _progress() as advance:
        found = certify_removal(model, test, train, advance=advance)
    if sign is not None:
        found = signed(found, sign)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(output, found)
    for line in summary(found):
        plain(line)
    plain(f"written: {output}")


def verify(
    certificate: Annotated[Path, typer.Argument(help="File that `certify` wrote.")],
    run: Annotated[Path, typer.Argument(help="The run or model that it is about.")],
    data: Data = None,
    public_key: Annotated[
        Path | None, typer.Option(help="PEM file of the key that must have signed it.")
    ] = None,
) -> None:
    """Check a certificate by measuring all of it again; exit code 1 if anything differs."""
    from lexical_sae.surgery.signing import check_signature, signer
    from lexical_sae.surgery.verification import differences, read_certificate

    said = read_certificate(certificate)
    wrong = check_signature(said, public_key)
    if wrong is not None:
        plain(f"failed: {certificate}: {wrong}.")
        raise typer.Exit(1)
    model = _changed_or_not(run)
    test, train = _data(run, model, data, str(said["data"]["measured"].get("split")))
    with _progress() as advance:
        found = differences(said, model, test, train, advance=advance)
    for line in found:
        plain(f"failed: {line}")
    if found:
        raise typer.Exit(1)
    plain(signer(said, public_key is not None))
    plain("verified: every number was measured again and is as the certificate says")


def _changed_or_not(run: Path) -> LexicalSAE:
    """The model; files that are there but do not fit one another are a changed model, and that is
    what a check is for. What is missing is a wrong argument, as elsewhere."""
    from lexical_sae.runs import load_run, model_folder_of

    try:
        return load_run(run)
    except ValueError as error:
        folder = model_folder_of(run) if run.exists() else None
        needed = ("config.json", "tokenizer.json", "*.safetensors")
        if folder is None or not all(any(folder.glob(name)) for name in needed):
            raise
        plain(f"failed: {error}")
        raise typer.Exit(1) from None


def summary(found: dict[str, Any]) -> list[str]:
    """What a certificate says, for people."""
    effect, accuracy = found["effect"], found["accuracy"]
    shown = [f"{100 * accuracy['change'][key]:+.1f}" for key in ("value", "low", "high")]
    cut, unread = [entry["word"] for entry in found["suppressed"]], found["unread"]["words"]
    lines = []
    if cut:
        tested = found["non_interference"]
        lines += [
            f"cut out: {_some(cut)}",
            f"cannot matter: {tested['fillings']:,} random fillings of these words changed "
            f"{tested['differing']} decisions' logits by a bit or more",
        ]
    if unread:
        tested = found["unread"]
        lines += [
            f"left unread: {_some(unread)}",
            f"cannot matter: of {tested['fillings']:,} texts in which these words were put in, "
            f"exchanged or dropped {tested['differing']} were read otherwise",
        ]
        if tested["not_put_in"]:
            why = "they could become part of another phrase of the list"
            lines.append(f"dropped only, since {why}: {_some(tested['not_put_in'])}")
    lines += [
        f"effect on {effect['rows']:,} rows: {effect['rows_touched']:,} touched, "
        f"{effect['decisions_changed']:,} decided otherwise; mean change of the decided logit "
        f"{effect['mean_realised_change']:+.4f} ({effect['mean_predicted_change']:+.4f} predicted, "
        f"{effect['mean_units_switched']:.2f} hidden units switched)",
        f"accuracy: {100 * accuracy['before']:.1f} % before, {100 * accuracy['after']:.1f} % after "
        f"(change {shown[0]}, 95 % interval {shown[1]} to {shown[2]} points)",
    ]
    leak = found["leak"]
    if "why" in leak:
        return [*lines, f"leak: not measured, since {leak['why']}"]
    for probe, after in leak["after"].items():
        before = leak["before"][probe]
        lines.append(
            f"leak, {probe} probe (does the text hold one of them?): AUC {_auc(before)} before, "
            f"{_auc(after)} after"
        )
    return lines


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - 8:,} more" if len(words) > 8 else ""
    return f"{', '.join(words[:8])}{more}"


def _auc(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return f"undefined ({estimate['why']})"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def _data(
    run: Path, model: LexicalSAE, data: str | None, split: str
) -> tuple[TextDataset, TextDataset | None]:
    """The split to measure on, and the training split."""
    from lexical_sae.evaluation.held_out import check_task, same_labels
    from lexical_sae.runs import config_of_run
    from lexical_sae.text.registry import load_splits
    from lexical_sae.training.run import run_splits

    config = config_of_run(run, "--data") if data is None else None
    name = str(data if config is None else config.dataset)
    splits = load_splits(name) if config is None else run_splits(config)
    if split not in splits:
        raise ValueError(f"{name} has no split {split!r}; expected one of {', '.join(splits)}.")
    check_task(model, splits[split])
    train = splits.get("train") if split != "train" else None
    labels = model.config.labels
    fitted = None if train is None else same_labels(train, labels)
    return same_labels(splits[split], labels), fitted


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("rows read: {task.completed}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda rows: progress.advance(task, rows)
