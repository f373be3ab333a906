"""Predictions for every row of a file, without holding the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexical_sae.prediction_jobs import ClassifyJob, Job, TagJob
from lexical_sae.prediction_rows import ABSTAIN, Layout
from lexical_sae.text.errors import DataError
from lexical_sae.text.rows import BadRow, Row
from lexical_sae.text.stream import check_input, open_rows
from lexical_sae.text.survey import Survey, survey
from lexical_sae.text.write_rows import OUTPUT_SUFFIXES, open_writer, replacing

if TYPE_CHECKING:
    from lexical_sae.certify.evidence import Evidence
    from lexical_sae.model.lexical_sae import LexicalSAE

WINDOW_BATCHES = 16
"""Batches that are read ahead, so that texts of like length can share a batch."""


@dataclass(frozen=True)
class PredictionSummary:
    """What became of the rows of a file."""

    rows: int
    predicted: int
    skipped: int
    first_skipped: tuple[BadRow, ...]
    """The first 20 of the skipped rows, with their reasons."""
    truncated: int
    """Texts longer than the model reads, whose ends it did not see."""
    open_words: float
    """Open words per text (per word of a tagger), on average."""
    seconds: float
    notes: tuple[str, ...]
    abstained: int = 0
    """Rows that a policy left without a label."""
    task: str = "classification"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def predict_file(
    model: LexicalSAE,
    input: str | Path,
    output: str | Path,
    *,
    text_column: str | None = None,
    batch_size: int = 32,
    skip_bad: bool = False,
    overwrite: bool = False,
    policy: str | Path | None = None,
    codes: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PredictionSummary:
    """Predict every row of ``input`` into ``output``, both CSV, TSV, JSON Lines or parquet.

    Every column of the input is kept, in its order. The file is read twice, first to find bad
    rows: with one, nothing is predicted or written unless ``skip_bad``. ``policy`` and ``codes``
    are files of `certify.evidence_files`: decisions that break a limit abstain, and every decision
    gets its reason codes. ``progress`` is called with the rows done and the rows in all.
    """
    start = time.perf_counter()
    source, target = Path(input), Path(output)
    check_files(source, target, overwrite=overwrite)
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1.")
    before, suffix = _fingerprint(source), target.suffix.lower()
    stream = open_rows(source, text_column, words=model.config.task == "tagging")
    found = survey(stream)
    _refuse_bad(source, found, skip_bad)
    job, unknown = _job(model, batch_size, suffix, stream.text_column, policy, codes)
    _refuse_clash(source, found.columns, job.added)
    predicted = done = 0
    with (
        replacing(target) as scratch,
        open_writer(
            scratch, suffix, (*found.columns, *job.added), job.schema(stream, found)
        ) as writer,
    ):
        for window in windows(stream, WINDOW_BATCHES * batch_size):
            if progress is not None:
                progress(done, found.rows)
            done += len(window)
            rows = [row for row in window if isinstance(row, Row)]
            if not rows:
                continue
            writer.write(job.rows(rows, stream.text_column))
            predicted += len(rows)
        if _fingerprint(source) != before:
            raise DataError(f"{source} was changed while it was read; run again.")
        if progress is not None:
            progress(done, found.rows)
    return PredictionSummary(
        rows=found.rows,
        predicted=predicted,
        skipped=found.bad,
        first_skipped=found.first_bad,
        truncated=job.counts.truncated,
        open_words=job.counts.open_words / max(1, job.counts.decisions),
        seconds=time.perf_counter() - start,
        notes=(*stream.notes, *unknown),
        abstained=job.counts.abstained,
        task=model.config.task,
    )


def _job(
    model: LexicalSAE,
    batch_size: int,
    suffix: str,
    column: str,
    policy: str | Path | None,
    codes: str | Path | None,
) -> tuple[Job, tuple[str, ...]]:
    """What the model's task does with rows, and notes about the policy and the codes."""
    if model.config.task == "tagging":
        if policy is not None or codes is not None:
            raise ValueError("policy and codes are for classifiers; this model tags words.")
        return TagJob(model, batch_size, suffix, column), ()
    evidence, unknown = load_evidence(model, policy, codes)
    layout = Layout(model.config.labels, suffix, policy=policy is not None, codes=codes is not None)
    return ClassifyJob(model, batch_size, layout, evidence), unknown


def load_evidence(
    model: LexicalSAE, policy: str | Path | None, codes: str | Path | None
) -> tuple[Evidence | None, tuple[str, ...]]:
    """The limits and codes of two files for one model, and notes about words it does not have."""
    if policy is None and codes is None:
        return None, ()
    from lexical_sae.certify.evidence import Evidence
    from lexical_sae.certify.evidence_files import load_codes, load_policy

    if policy is not None and ABSTAIN in model.config.labels:
        raise ValueError(f"The model has a label {ABSTAIN!r}, which is what a policy answers.")
    assert model.dictionary is not None
    evidence = Evidence(
        model.dictionary,
        limits=() if policy is None else load_policy(policy),
        codes=() if codes is None else load_codes(codes),
    )
    if not evidence.unknown:
        return evidence, ()
    some = ", ".join(evidence.unknown[:5])
    more = f" and {len(evidence.unknown) - 5} more" if len(evidence.unknown) > 5 else ""
    return evidence, (f"not in the model's dictionary, so never open: {some}{more}",)


def check_files(input: Path, output: Path, *, overwrite: bool = False) -> None:
    """What can be refused before a model is loaded."""
    check_input(input)
    if output.suffix.lower() not in OUTPUT_SUFFIXES:
        raise DataError(
            f"{output} ends in {output.suffix or 'nothing'!r}; the output must end in one of "
            f"{', '.join(OUTPUT_SUFFIXES)}."
        )
    if output.exists() and output.samefile(input):
        raise DataError(f"{output} is both the input and the output; choose another output.")
    if output.is_dir() or (output.exists() and not overwrite):
        advice = "." if output.is_dir() else ", or pass --overwrite (overwrite=True)."
        raise DataError(f"{output} exists; choose another output{advice}")
    if not output.parent.is_dir():
        raise DataError(f"{output.parent} is not a folder; create it or choose another output.")
    if output.suffix.lower() == ".parquet":
        from lexical_sae.text.parquet import import_parquet

        import_parquet(output)


def windows(rows: Iterable[Row | BadRow], size: int) -> Iterator[list[Row | BadRow]]:
    """Lists of ``size`` rows; no row is read before the list it belongs to is asked for."""
    window: list[Row | BadRow] = []
    for row in rows:
        window.append(row)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window


def _fingerprint(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _refuse_bad(path: Path, found: Survey, skip_bad: bool) -> None:
    if not found.bad:
        return
    if not skip_bad:
        raise DataError(
            f"{path}, {found.first_bad[0]}; {found.bad:,} of the {found.rows:,} rows cannot be "
            "used, so correct them or leave them out with --skip-bad (skip_bad=True)."
        )
    if found.bad == found.rows:
        raise DataError(
            f"{path}, {found.first_bad[0]}; none of the {found.rows:,} rows can be used, so there "
            "is nothing to predict."
        )


def _refuse_clash(path: Path, columns: Sequence[str], added: Sequence[str]) -> None:
    clash = next((name for name in columns if name in added), None)
    if clash is not None:
        raise DataError(
            f"{path} already has a column {clash!r}, which the predictions are written to; rename "
            "it in the input."
        )
