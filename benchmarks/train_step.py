"""One training step in the circuit phase of the default recipe: ours against the plain form.

    python -m benchmarks.train_step --json

A step is what training does between two batches: forward, all terms, backward, gradient clipping,
fused AdamW; every parameter learns and every term of the default recipe is on, the content term
besides (the guide, one linear layer that would be the same in every form, is left out). A 2-layer
BERT of width 128 with a masked-LM head, all 30,517 words of its vocabulary as the dictionary, texts
of full length, 128 words open per text, dropout on. The plain form is `plain_objective`: dense, but
no larger than it needs to be; "tuned" is the same with the fastest dense pooling that was found.

Before anything is timed, the values of all terms and the gradients of all parameters of the forms
are compared.

Time: all forms train the same model in one process, in turns, so that each measured step follows
one of another form; ratios are of medians. Where others use the machine, look at the CPU seconds
with --threads=1: waiting for a core does not count there.

Memory: each form in a process of its own, the kernel's peak over two steps above the base. The base
is the process with the model, the batches, the objective and the optimiser's whole state (made by a
step on two texts of eight tokens), and without gradients: gradients count as part of a step,
weights and optimiser do not. "Above model" has the optimiser's state and the objective on top.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from benchmarks.peak import peak_extra_bytes
from benchmarks.plain_objective import PlainObjective, plain_classify, tuned_classify
from benchmarks.train_problem import Problem, Size, Step, build_problem
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.training.objective import Objective
from lexical_sae.training.optimizers import build_optimizer, parameter_groups

FORMS: dict[str, tuple[type[Objective], Callable[..., Any]]] = {
    "ours": (Objective, LexicalSAE.classify),
    "plain": (PlainObjective, plain_classify),
    "plain_tuned": (PlainObjective, tuned_classify),
}
CLASSES = (2, 77)
LOOSE = 1e-3  # fp32 at full size

T = TypeVar("T")


class Training:
    """One form of the step on a problem's model; several may share a model and an optimiser."""

    def __init__(self, problem: Problem, form: str, optimizer: torch.optim.Optimizer) -> None:
        kind, self.classify = FORMS[form]
        self.model = problem.model
        self.objective: Objective = problem.objective(kind)
        self.optimizer = optimizer
        self.max_norm = problem.settings.max_gradient_norm

    def gradients(self, step: Step, seed: int = 0) -> dict[str, float]:
        """Forward and backward; what the objective saw. The seed is for dropout."""
        torch.manual_seed(seed)
        self.optimizer.zero_grad(set_to_none=True)
        state = self.classify(self.model, step.input_ids, step.attention_mask)
        loss: Tensor = self.objective(state, step.batch)
        del state  # the graph keeps what backward needs
        loss.backward()  # type: ignore[no-untyped-call]
        return self.objective.finish_step()

    def step(self, step: Step, seed: int = 0) -> None:
        self.gradients(step, seed)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()


def make_optimizer(problem: Problem) -> torch.optim.Optimizer:
    return build_optimizer(parameter_groups(problem.model, problem.settings), problem.settings)


def differences(problem: Problem) -> dict[str, float]:
    """Relative difference from the plain form of every seen value and every gradient (as norms),
    at its largest over the other forms and two batches: the second has running means behind it."""
    optimizer = make_optimizer(problem)
    forms = {form: Training(problem, form, optimizer) for form in FORMS}
    found: dict[str, float] = {}
    for number, step in enumerate(problem.steps):
        values: dict[str, dict[str, float]] = {}
        gradients: dict[str, dict[str, Tensor]] = {}
        for form, training in forms.items():
            values[form] = training.gradients(step, seed=number)
            named = problem.model.named_parameters()
            gradients[form] = {name: p.grad for name, p in named if p.grad is not None}
        largest = max(float(gradient.norm()) for gradient in gradients["plain"].values())
        for form in FORMS:
            for name, value in _matched(values["plain"], values[form]):
                apart = abs(value[1] - value[0]) / max(abs(value[0]), 1e-12)
                found[name] = max(found.get(name, 0.0), apart)
            for name, gradient in _matched(gradients["plain"], gradients[form]):
                # biases before a softmax have gradients that are rounding and nothing else
                scale = max(float(gradient[0].norm()), 1e-6 * largest)
                apart = float((gradient[1] - gradient[0]).norm()) / scale
                found["∂ " + name] = max(found.get("∂ " + name, 0.0), apart)
    optimizer.zero_grad(set_to_none=True)
    return found


def _matched(left: dict[str, T], right: dict[str, T]) -> list[tuple[str, tuple[T, T]]]:
    if left.keys() != right.keys():
        raise ValueError("The forms do not have the same terms and gradients.")
    return [(name, (left[name], right[name])) for name in left]


def time_child(size: Size, repeats: int) -> dict[str, Any]:
    problem = build_problem(size)
    apart = differences(problem)
    worst = max(apart, key=apart.__getitem__)
    if not apart[worst] <= LOOSE:
        raise SystemExit(f"The forms differ: {worst} by {apart[worst]:.1e} of its size.")
    optimizer = make_optimizer(problem)
    forms = {form: Training(problem, form, optimizer) for form in FORMS}
    seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    cpu_seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    for turn in range(repeats + 1):  # the first one is warm-up
        for form, training in forms.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            training.step(problem.steps[turn % len(problem.steps)], seed=turn)
            seconds[form].append(time.perf_counter() - start)
            cpu_seconds[form].append(time.process_time() - cpu_start)
    return {
        "seconds": {form: values[1:] for form, values in seconds.items()},
        "cpu_seconds": {form: values[1:] for form, values in cpu_seconds.items()},
        "worst": [worst, apart[worst]],
    }


def memory_child(size: Size, form: str) -> dict[str, Any]:
    problem = build_problem(size)
    model_only = _settled()
    training = Training(problem, form, make_optimizer(problem))
    training.step(problem.steps[0].tiny())
    training.optimizer.zero_grad(set_to_none=True)
    base = _settled()

    def two_steps() -> None:
        for step in problem.steps:
            training.step(step)

    extra = peak_extra_bytes(two_steps)
    with torch.no_grad():
        step = problem.steps[0]
        state = problem.model.classify(step.input_ids, step.attention_mask)
        opened = float(state.open_words.counts().float().mean())
    return {"extra": extra, "above_model": extra + base - model_only, "open_words": opened}


def _settled() -> int:
    """The resident set once all that was freed has gone back to the kernel: what the heap kept
    would otherwise hide a part of the step."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def run_child(kind: str, classes: int, args: argparse.Namespace) -> dict[str, Any]:
    names = ("batch", "length", "threads", "repeats")
    flags = [f"--{name}={getattr(args, name)}" for name in names]
    command = [sys.executable, "-m", "benchmarks.train_step", f"--child={kind}", *flags]
    done = subprocess.run(
        [*command, f"--classes={classes}"], check=True, stdout=subprocess.PIPE, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(args: argparse.Namespace) -> dict[str, float]:
    result: dict[str, float] = {}
    columns = ("seconds", "CPU seconds", "GiB", "GiB above model", "ours faster", "by CPU seconds")
    tell(f"{'classes':8s}{'form':12s}" + "".join(f"{name:>17s}" for name in columns))
    for classes in CLASSES:
        tag = "" if classes == 2 else f"_{classes}"
        timed = run_child("time", classes, args)
        wall = {form: statistics.median(values) for form, values in timed["seconds"].items()}
        cpu = {form: statistics.median(values) for form, values in timed["cpu_seconds"].items()}
        for form in FORMS:
            size = run_child(form, classes, args)
            gib = (size["extra"] / 2**30, size["above_model"] / 2**30)
            faster = (wall[form] / wall["ours"], cpu[form] / cpu["ours"])
            end = tag if form == "ours" else f"{tag}_{form}"
            result[f"memory_gib{end}"] = gib[0]
            result[f"memory_above_model_gib{end}"] = gib[1]
            result[f"seconds{end}"] = wall[form]
            result[f"cpu_seconds{end}"] = cpu[form]
            if form != "ours":
                result[f"speedup_vs_{form}{tag}"] = faster[0]
                result[f"cpu_speedup_vs_{form}{tag}"] = faster[1]
            figures = (wall[form], cpu[form], *gib, *faster)
            tell(f"{classes:<8d}{form:12s}" + "".join(f"{figure:17.3f}" for figure in figures))
        result[f"open_words{tag}"] = size["open_words"]
        tell(f"{classes:<8d}the forms differ by at most {timed['worst'][1]:.0e}", end=" ")
        tell(f"({timed['worst'][0]}); {size['open_words']:.0f} words open per text")
    return result


def tell(line: str, end: str = "\n") -> None:
    print(line, end=end, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="last line: the figures as JSON")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9, help="timed steps per form")
    parser.add_argument("--child", choices=("time", *FORMS), help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, default=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        torch.set_num_threads(args.threads)
        size = Size(batch=args.batch, length=args.length, classes=args.classes)
        timing = args.child == "time"
        print(
            json.dumps(time_child(size, args.repeats) if timing else memory_child(size, args.child))
        )
        return
    result = {name: round(value, 4) for name, value in measure(args).items()}
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:40s} {value:10.3f}")


if __name__ == "__main__":
    main()
