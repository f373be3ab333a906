"""What becomes of the rows of a file: the columns that a model adds, and the counts to report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lexical_sae.predicting import predict_texts
from lexical_sae.prediction_rows import Layout
from lexical_sae.tagging import predict_tags
from lexical_sae.text.columns import TOKENS_NAMES
from lexical_sae.text.token_lists import written_words
from lexical_sae.text.write_rows import DELIMITERS, as_json, parquet_schema

if TYPE_CHECKING:
    from lexical_sae.certify.evidence import Evidence
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text.rows import Row
    from lexical_sae.text.stream import RowStream
    from lexical_sae.text.survey import Survey


@dataclass
class Counts:
    """Over all rows so far."""

    decisions: int = 0  # texts, or words of sentences
    open_words: int = 0
    truncated: int = 0
    abstained: int = 0


class Job(Protocol):
    """A task's part in predicting a file."""

    added: tuple[str, ...]
    counts: Counts

    def schema(self, stream: RowStream, found: Survey) -> Any: ...

    def rows(self, rows: Sequence[Row], column: str) -> list[dict[str, Any]]: ...


class ClassifyJob:
    """A label for each text."""

    def __init__(
        self, model: LexicalSAE, batch_size: int, layout: Layout, evidence: Evidence | None
    ) -> None:
        self.model, self.batch_size = model, batch_size
        self.layout, self.evidence = layout, evidence
        self.added = layout.added
        self.counts = Counts()

    def schema(self, stream: RowStream, found: Survey) -> Any:
        return self.layout.schema(stream, found)

    def rows(self, rows: Sequence[Row], column: str) -> list[dict[str, Any]]:
        texts = [row.values[column] for row in rows]
        made = predict_texts(self.model, texts, self.batch_size, self.evidence)
        self.counts.decisions += len(rows)
        self.counts.open_words += int(made.open_words.sum())
        self.counts.truncated += int(made.truncated.sum())
        self.counts.abstained += sum(bool(judged.breaches) for judged in made.judgements or ())
        return self.layout.rows(rows, made)


class TagJob:
    """A tag for each word, and the entities; lists are JSON text where a format has no lists."""

    def __init__(self, model: LexicalSAE, batch_size: int, suffix: str, column: str) -> None:
        self.model, self.batch_size, self.suffix = model, batch_size, suffix
        # the words that the tags belong to, unless the file has them already
        words = () if column.lower() in TOKENS_NAMES else ("words",)
        self.added: tuple[str, ...] = (*words, "predicted_tags", "entities", "open_words")
        self.counts = Counts()

    def schema(self, stream: RowStream, found: Survey) -> Any:
        if self.suffix != ".parquet":
            return None
        import pyarrow as pa

        entity = [("text", pa.string()), ("start", pa.int64()), ("end", pa.int64())]
        entity += [("type", pa.string()), ("score", pa.float64())]
        kinds = {
            "words": pa.list_(pa.string()),
            "predicted_tags": pa.list_(pa.string()),
            "entities": pa.list_(pa.struct(entity)),
            "open_words": pa.int64(),
        }
        added = {name: kinds[name] for name in self.added}
        return parquet_schema(found.columns, found.kinds, stream.source.schema, added)

    def rows(self, rows: Sequence[Row], column: str) -> list[dict[str, Any]]:
        given = [written_words(row.values[column], column) for row in rows]
        written = []
        for row, tagged in zip(rows, predict_tags(self.model, given, self.batch_size), strict=True):
            self.counts.decisions += len(tagged.tags)
            self.counts.open_words += tagged.open_words
            values = {
                "words": self._list(tagged.sentence.words),
                "predicted_tags": self._list(tagged.tags),
                "entities": self._list([entity.to_dict() for entity in tagged.entities]),
                "open_words": tagged.open_words,
            }
            written.append({**row.values, **{name: values[name] for name in self.added}})
        return written

    def _list(self, values: Sequence[Any]) -> Any:
        return as_json(list(values)) if self.suffix in DELIMITERS else list(values)
