"""Predictions as rows of a file: the columns they add, in the form that each format can hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lexical_sae.text.write_rows import DELIMITERS, parquet_schema

if TYPE_CHECKING:
    from lexical_sae.certify.evidence import Judgement
    from lexical_sae.predicting import Predictions
    from lexical_sae.text.rows import Row
    from lexical_sae.text.stream import RowStream
    from lexical_sae.text.survey import Survey

MAX_LABEL_COLUMNS = 20
"""Labels up to which a CSV or TSV file gets a column for the probability of each."""
MAX_CODES = 4
"""Reason codes per row, the strongest first."""
ABSTAIN = "abstain"
"""What a decision that breaks a policy is labelled."""


class Layout:
    """The columns that a prediction adds, as the output's format can hold them."""

    def __init__(
        self, labels: Sequence[str], suffix: str, *, policy: bool = False, codes: bool = False
    ) -> None:
        self.labels, self.suffix = labels, suffix
        self.policy, self.codes = policy, codes
        self.flat = suffix in DELIMITERS
        few = len(labels) <= MAX_LABEL_COLUMNS
        spread = [f"p_{label}" for label in labels] if few else []
        shares = spread if self.flat else ["probabilities"]
        judged = ["abstain_reason"] * policy + ["reason_codes"] * codes
        self.added = ("predicted_label", "probability", "open_words", *shares, *judged)

    def rows(self, rows: Sequence[Row], made: Predictions) -> list[dict[str, Any]]:
        judgements = made.judgements or [None] * len(rows)
        return [
            row.values | dict(zip(self.added, self._values(*said), strict=True))
            for row, *said in zip(
                rows,
                made.labels,
                made.probabilities.tolist(),
                made.open_words.tolist(),
                judgements,
                strict=True,
            )
        ]

    def _values(
        self, label: str, shares: list[float], count: int, judged: Judgement | None
    ) -> Iterator[Any]:
        """In the order of `added`."""
        yield ABSTAIN if judged is not None and judged.breaches else label
        yield max(shares)
        yield count
        if not self.flat:
            yield dict(zip(self.labels, shares, strict=True))
        elif len(self.labels) <= MAX_LABEL_COLUMNS:
            yield from shares
        if judged is None:
            return
        if self.policy:
            yield judged.reason
        if self.codes:
            top = judged.codes[:MAX_CODES]
            if self.flat:
                yield "; ".join(f"{code.code} {code.share:.4f}" for code in top)
            else:
                yield [code.to_dict() for code in top]

    def schema(self, stream: RowStream, found: Survey) -> Any:
        if self.suffix != ".parquet":
            return None
        import pyarrow as pa

        shares = pa.struct([(label, pa.float64()) for label in self.labels])
        code = pa.list_(pa.struct([("code", pa.string()), ("share", pa.float64())]))
        kinds = [pa.string(), pa.float64(), pa.int64(), shares]
        kinds += [pa.string()] * self.policy + [code] * self.codes
        added = dict(zip(self.added, kinds, strict=True))
        return parquet_schema(found.columns, found.kinds, stream.source.schema, added)
