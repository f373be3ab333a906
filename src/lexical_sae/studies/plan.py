"""The plan of a study: every run and what it would take; nothing is fetched, trained or written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lexical_sae.studies.cells import Cell, short_name
from lexical_sae.studies.grid import finished
from lexical_sae.studies.grid_config import GridConfig
from lexical_sae.studies.planned_data import Splits, need_line, run_line, splits_of_run
from lexical_sae.studies.planned_model import Planned, backbone_at_hand, plan_run
from lexical_sae.studies.registry import Study
from lexical_sae.studies.run_folder import is_trained
from lexical_sae.studies.strict import StudyConfig
from lexical_sae.text.errors import SourceUnavailableError
from lexical_sae.training.config import DEFAULT_BACKBONE, RunConfig, default_recipe

GIB = 2**30


@dataclass
class Plan:
    """What is told of a study, and whether it can be run as things are."""

    study: Study
    config: StudyConfig
    folder: Path
    data: list[str] = field(default_factory=list)  # a line for each dataset
    runs: list[str] = field(default_factory=list)  # a line for each run, or for several alike
    count: int = 0  # runs
    done: int = 0
    stopped: int = 0  # runs that cannot be
    blocked: bool = False  # whether all of the study would stop at once
    missing: SourceUnavailableError | None = None  # the data that it would stop for
    all_here: bool = True  # whether nothing is left to fetch

    @property
    def code(self) -> int:
        """The exit code: 2 if nothing can be run, 1 if a part of it."""
        if self.blocked or (self.stopped and self.stopped == self.count):
            return 2
        return 1 if self.stopped else 0

    @property
    def lines(self) -> list[str]:
        stopped = f", {self.stopped} cannot run" if self.stopped else ""
        runs = f"{self.count} run{'s' * (self.count != 1)}, {self.done} of them finished{stopped}"
        runs = runs if self.count else "0 runs: the study trains nothing"
        end = f"{runs}; the folder is {self.folder}; nothing was trained or written"
        return [*self.data, *self.runs, end]


def plan_study(study: Study, config: StudyConfig, folder: Path) -> Plan:
    """Datasets, then runs, then how many there are."""
    plan = Plan(study, config, folder)
    needed = _needs(plan)  # first, as a run does
    cells = study.cells(config)
    plan.count = len(cells)
    read: dict[str, Splits | Exception | None] = {}
    sizes: dict[str, str] = {}
    failed: dict[tuple[str, str], list[int]] = {}  # dataset and reason: places of runs
    lines: dict[int, str] = {}
    for place, cell in enumerate(cells, 1):
        try:
            lines[place] = f"[{place}/{len(cells)}] {cell.title}: {_run(plan, cell, read, sizes)}"
        except (ValueError, OSError, ImportError) as error:
            _keep(plan, error)
            failed.setdefault((cell.dataset, str(error)), []).append(place)
    for (_, reason), places in failed.items():
        lines[places[0]] = f"{_named(cells, places)}: cannot run: {reason}"
    plan.runs = [line for _, line in sorted(lines.items())]
    plan.stopped = plan.count if plan.blocked else sum(map(len, failed.values()))
    plan.data += needed
    return plan


def _needs(plan: Plan) -> list[str]:
    """A line for each dataset that is read besides those that are trained on."""
    lines = []
    for need in plan.study.needs(plan.config):
        try:
            line, here = need_line(need)
            plan.all_here = plan.all_here and here
        except (ValueError, OSError, ImportError) as error:
            _keep(plan, error)
            line = f"cannot run: {error}"
        lines.append(line)
    return lines


def _keep(plan: Plan, error: Exception) -> None:
    """A grid goes on with other runs, any other study stops."""
    if not isinstance(plan.config, GridConfig):
        plan.blocked = True
        if isinstance(error, SourceUnavailableError):
            plan.missing = plan.missing or error


def _run(
    plan: Plan, cell: Cell, read: dict[str, Splits | Exception | None], sizes: dict[str, str]
) -> str:
    """What a run would take; most arms and all seeds share it, so it is worked out once."""
    config = cell.config()
    own = {"settings", "backbone", "recipe", "dense_twin"}
    key = json.dumps(config.model_dump(exclude=own))
    if key not in read:
        try:
            read[key] = splits_of_run(plan.study, plan.config, config)
        except (ValueError, OSError, ImportError) as error:
            read[key] = error
    splits = read[key]
    if isinstance(splits, Exception):
        raise splits
    plan.all_here = plan.all_here and splits is not None
    line = run_line(config, splits)
    plan.data += [line] if line not in plan.data else []
    alike = key + _what_counts(config)
    if alike not in sizes:
        sizes[alike] = _size(config, splits)
    done = _finished(cell, config, plan.folder)
    plan.done += done
    return sizes[alike] + ", finished" * done


def _named(cells: Sequence[Cell], places: Sequence[int]) -> str:
    """Runs that cannot be, for one and the same reason."""
    first = cells[places[0] - 1]
    if len(places) == 1:
        return f"[{places[0]}/{len(cells)}] {first.title}"
    backbones = {cells[place - 1].backbone for place in places}
    alone = len(backbones) == 1 and first.backbone != DEFAULT_BACKBONE
    of = f"{first.dataset}, {short_name(first.backbone)}" if alone else first.dataset
    return f"{len(places)} of {len(cells)} runs, {of}"


def _finished(cell: Cell, config: RunConfig, folder: Path) -> bool:
    """A grid measures its runs one by one, any other study all of them in the end."""
    if cell.kept is None:
        return finished(cell, folder)
    return is_trained(config, folder / cell.path)


def _what_counts(config: RunConfig) -> str:
    """The settings that the size of a run follows from."""
    own = {"model", "target_words", "start_words", "batch_size", "max_length"}
    shape = config.settings.model_dump_json(include=own)
    return f"{config.backbone} {config.dense_twin} {config.recipe} {shape}"


def _size(config: RunConfig, splits: Splits | None) -> str:
    train = None if splits is None else splits["train"]
    planned = plan_run(config, backbone_at_hand(config.backbone), train)
    if planned is None:
        return f"{config.backbone} is not here yet; its size is known once it is"
    recipes = (config.recipe, default_recipe(config.dataset))
    tags = "tagging" in recipes if train is None else train.task == "tagging"
    unit = "sentences" if tags else "texts"
    return told(planned, train is not None, unit, twin=config.dense_twin)


def told(planned: Planned, read: bool, unit: str, *, twin: bool = False) -> str:
    """`read`: whether the texts were there to take lengths from."""
    size = f"{planned.parameters / 1e6:.1f}M parameters"
    memory = f"{planned.memory / GIB:.1f} GiB"
    length = f"{'up to' if read and not planned.by_config else 'at most'} {planned.length} tokens"
    batches = f"batches of {planned.batch_size} {unit} of {length}"
    if planned.by_config:
        most = "" if twin else "at most "  # how many words a dictionary has, a config does not say
        return f"{most}{size} by its published config, {batches}, {most}about {memory}"
    return f"{size}, {batches}, about {memory}"
