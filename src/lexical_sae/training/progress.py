"""What a run shows while it goes on: one live line on a terminal, plain lines anywhere else."""

from __future__ import annotations

import atexit
import math
import time
from types import TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from transformers import TrainerCallback

from lexical_sae.training.progress_text import (
    Piece,
    Style,
    duration,
    evaluation_pieces,
    fit,
    phase_of,
    value_pieces,
)

REFRESH_SECONDS = 0.1
PLAIN_LINES = 10  # of a whole run, where nothing can be overwritten


class ProgressCallback(TrainerCallback):
    """Phase, bar, steps, time left and the latest values; a permanent line per evaluation.

    Trainer tells its callbacks nothing of an exception. So train inside `with callback:` (or call
    `close()` in the end): then the live line is gone before a traceback is printed. Without it the
    line is taken down when Python ends.

    There is no thread that redraws: the line changes when a step ends, and a run that hangs looks
    as if it hangs.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.style = Style.of(console.encoding)
        self._live: Live | None = None
        self._latest: dict[str, Any] = {}
        self._accuracy: float | None = None
        self._step = self._first_step = self._total = 0
        self._began = self._drawn = 0.0
        self._next_plain = 0.0

    # -- Trainer's events ----------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.close()
        if not state.is_world_process_zero:
            return
        self._latest, self._accuracy = {}, None
        self._step = self._first_step = state.global_step
        self._total = max(1, state.max_steps)
        self._began = time.monotonic()
        self._set_next_plain()
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._live = Live(
                console=self.console,
                get_renderable=self._line,
                auto_refresh=False,
                transient=True,
            )
            atexit.register(self.close)
            self._live.start(refresh=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step = state.global_step
        self._draw()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        changed = bool(self._latest) and phase_of(logs) != phase_of(self._latest)
        self._latest, self._step = dict(logs), state.global_step
        self._draw(at_once=True)
        if self._live is None and self._began and (changed or self._step >= self._next_plain):
            self._print(self._plain_pieces())
            self._set_next_plain()

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any
    ) -> None:
        if not state.is_world_process_zero or not metrics:
            return
        self._accuracy = metrics.get("eval_accuracy", self._accuracy)
        pieces = evaluation_pieces(metrics, state.epoch or 0.0)
        if pieces:
            self._print(pieces)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.close()

    def close(self) -> None:
        """Take the live line down; may be called at any time and more than once."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            atexit.unregister(self.close)

    def __enter__(self) -> ProgressCallback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- what is shown -------------------------------------------------------------------------

    def _draw(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._live is not None and (at_once or now - self._drawn >= REFRESH_SECONDS):
            self._drawn = now
            self._live.refresh()

    def _line(self) -> RenderableType:
        """One line, never wider than the terminal: first the values shrink, then the bar goes."""
        width = self.console.width - 1  # some terminals wrap when the last column is written
        phase = phase_of(self._latest) if self._latest else "starting"
        fixed = [Piece(phase, 1), Piece(f"{self._step}/{self._total}", 0)]
        left = self._time_left()
        if left is not None:
            fixed.append(Piece(f"{left} left", 2))
        bar = max(5, min(24, width // 4 - 15))
        head = fit(fixed, "  ", width)
        room = width - len(head) - bar - 3
        if room < 0:
            return Text(head[:width], no_wrap=True, overflow="crop")
        values = value_pieces(self._latest, self._accuracy, self.style)
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(
            ProgressBar(self._total, self._step, width=bar),
            Text(head + " ", no_wrap=True),
            Text(fit(values, self.style.separator, room), style="dim", no_wrap=True),
        )
        return row

    def _plain_pieces(self) -> list[Piece]:
        pieces = [Piece(f"step {self._step}/{self._total}", 0)]
        pieces.append(Piece(phase_of(self._latest), 0))
        pieces += value_pieces(self._latest, self._accuracy, self.style, decimals=3)
        left = self._time_left()
        return [*pieces, Piece(f"{left} left", 0)] if left is not None else pieces

    def _print(self, pieces: list[Piece]) -> None:
        room = self.console.width - 1 if self.console.is_terminal else None
        text = fit(pieces, "  ", room) or min(pieces, key=lambda piece: piece.rank).text
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _time_left(self) -> str | None:
        done, to_do = self._step - self._first_step, self._total - self._step
        if done < 1 or to_do < 1:
            return None
        return duration((time.monotonic() - self._began) / done * to_do)

    def _set_next_plain(self) -> None:
        tenth = math.floor(PLAIN_LINES * self._step / self._total) + 1
        self._next_plain = tenth * self._total / PLAIN_LINES
