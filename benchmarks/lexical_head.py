"""The lexical head, forward and backward: ours, the plain form, and sentence-transformers.

    python -m benchmarks.lexical_head --json

"Plain" follows the definition: gate every position, then pool. "Plain, pooled first" uses that the
gate is monotone, as ours does. Every form starts from the same hidden states [B, L, H] and ends in
the gradients of all parameters, of a two-layer head on top included. Each runs in processes of its
own, in rounds that alternate, because the machine may be shared; the ratios are of medians within
one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peak import peak_extra_bytes
from lexical_sae.model.config import LexicalSAEConfig
from lexical_sae.model.heads import MLPHead
from lexical_sae.model.lexical_layer import LexicalLayer
from lexical_sae.model.reference import (
    plain_documents,
    plain_documents_pooled_first,
    plain_logits,
    plain_positions,
)
from lexical_sae.model.selection import pooled_logits

FORMS = (
    "ours",
    "plain",
    "plain_pooled_first",
    "sentence_transformers",
    "ours_positions",
    "plain_positions",
)
OPEN_PER_DOCUMENT = 100
OPEN_PER_POSITION = 32


class Problem:
    """Random states and parameters of the asked size, thresholds set for the open words."""

    def __init__(self, batch: int, length: int, words: int, size: int, positions: bool) -> None:
        torch.manual_seed(0)
        config = LexicalSAEConfig(dictionary_size=words)
        self.h = torch.randn(batch, length, size).requires_grad_()
        self.mask = torch.ones(batch, length, dtype=torch.bool)
        self.layer = LexicalLayer(config, size)
        self.head = MLPHead(words, classes=2, width=config.head_width)
        with torch.no_grad():
            self.layer.reset()
            self.head.reset()
            self.layer.weight.mul_(2.5)
            self.layer.threshold.fill_(self._threshold(positions))
        self.labels = torch.arange(batch * (length if positions else 1)) % 2

    def _threshold(self, positions: bool) -> float:
        if positions:
            z = self.h[0] @ self.layer.weight.T + self.layer.bias
            wanted = OPEN_PER_POSITION * z.shape[0]
        else:
            h = self.h[:4].flatten(0, 1)
            owner = torch.arange(4).repeat_interleave(self.h.shape[1])
            z = pooled_logits(h, self.layer.weight, owner, 4) + self.layer.bias
            wanted = OPEN_PER_DOCUMENT * 4
        return float(z.flatten().topk(wanted).values[-1])

    def clear(self) -> None:
        for parameter in (self.h, *self.layer.parameters(), *self.head.parameters()):
            parameter.grad = None


def forward_ours(p: Problem) -> Tensor:
    logits: Tensor = p.head(p.layer.documents(p.h, p.mask))
    return logits


def forward_plain(p: Problem) -> Tensor:
    return plain_logits(p.head, plain_documents(p.layer, p.h, p.mask))


def forward_plain_pooled_first(p: Problem) -> Tensor:
    return plain_logits(p.head, plain_documents_pooled_first(p.layer, p.h, p.mask))


def forward_ours_positions(p: Problem) -> Tensor:
    logits: Tensor = p.head(p.layer.positions(p.h, p.mask))
    return logits


def forward_plain_positions(p: Problem) -> Tensor:
    return plain_logits(p.head, plain_positions(p.layer, p.h, p.mask)).flatten(0, 1)


def forward_sentence_transformers(p: Problem) -> Tensor:
    """Decoder as a masked LM has it, then the peer's pooling, then the same head."""
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    logits = F.linear(p.h, p.layer.weight, p.layer.bias)  # [B, L, V]
    features = {"token_embeddings": logits, "attention_mask": p.mask.long()}
    pooled = SpladePooling("max")(features)["sentence_embedding"]  # [B, V]
    return plain_logits(p.head, pooled)


FORWARD: dict[str, Callable[[Problem], Tensor]] = {
    "ours": forward_ours,
    "plain": forward_plain,
    "plain_pooled_first": forward_plain_pooled_first,
    "sentence_transformers": forward_sentence_transformers,
    "ours_positions": forward_ours_positions,
    "plain_positions": forward_plain_positions,
}


def step(form: str, problem: Problem) -> None:
    problem.clear()
    loss = nn.functional.cross_entropy(FORWARD[form](problem), problem.labels)
    loss.backward()  # type: ignore[no-untyped-call]


def child(form: str, sizes: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(sizes.threads)
    problem = Problem(
        sizes.batch, sizes.length, sizes.words, sizes.size, form.endswith("_positions")
    )
    if form == "sentence_transformers":
        import sentence_transformers.sparse_encoder.modules  # noqa: F401  not its import's memory
    memory = peak_extra_bytes(lambda: step(form, problem))
    seconds = []
    for _ in range(sizes.repeats):
        start = time.perf_counter()
        step(form, problem)
        seconds.append(time.perf_counter() - start)
    with torch.no_grad():
        layer, h, mask = problem.layer, problem.h, problem.mask
        words = (layer.positions if form.endswith("_positions") else layer.documents)(h, mask)
        opened = float(words.counts().float().mean())
    return {"form": form, "seconds": seconds, "memory": memory, "open_words": opened}


def run_child(form: str, args: argparse.Namespace, **changes: int) -> dict[str, object]:
    names = ("batch", "length", "words", "size", "threads", "repeats")
    values = {name: changes.get(name, getattr(args, name)) for name in names}
    flags = [f"--{name}={value}" for name, value in values.items()]
    command = [sys.executable, "-m", "benchmarks.lexical_head", f"--child={form}", *flags]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(args: argparse.Namespace) -> dict[str, float]:
    seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    memory: dict[str, list[int]] = {form: [] for form in FORMS}
    opened: dict[str, float] = {}
    for turn in range(args.rounds):
        for form in FORMS:
            result = run_child(form, args)
            seconds[form] += result["seconds"]  # type: ignore[arg-type]
            memory[form].append(result["memory"])  # type: ignore[arg-type]
            opened[form] = result["open_words"]  # type: ignore[assignment]
            print(
                f"round {turn + 1}/{args.rounds}  {form:22s} "
                f"{statistics.median(seconds[form]):7.3f} s  "
                f"{memory[form][-1] / 2**20:8.0f} MiB extra  {opened[form]:5.0f} open",
                file=sys.stderr,
            )
    time_of = {form: statistics.median(values) for form, values in seconds.items()}
    size_of = {form: statistics.median(values) for form, values in memory.items()}
    # four times the length at a quarter of the batch: the same tokens, four times L·V
    longer = run_child("ours", args, length=4 * args.length, batch=args.batch // 4, repeats=1)
    return {
        "speedup_vs_plain": time_of["plain"] / time_of["ours"],
        "memory_vs_plain": size_of["ours"] / size_of["plain"],
        "speedup_vs_plain_pooled_first": time_of["plain_pooled_first"] / time_of["ours"],
        "memory_vs_plain_pooled_first": size_of["ours"] / size_of["plain_pooled_first"],
        "speedup_vs_sentence_transformers": time_of["sentence_transformers"] / time_of["ours"],
        "memory_vs_sentence_transformers": size_of["ours"] / size_of["sentence_transformers"],
        "speedup_vs_plain_positions": time_of["plain_positions"] / time_of["ours_positions"],
        "memory_vs_plain_positions": size_of["ours_positions"] / size_of["plain_positions"],
        "memory_at_4x_length": float(longer["memory"]) / size_of["ours"],  # type: ignore[arg-type]
        "seconds": time_of["ours"],
        "memory_mib": size_of["ours"] / 2**20,
        "open_words": opened["ours"],
        "open_words_positions": opened["ours_positions"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="last line: the ratios as JSON")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--words", type=int, default=30522)
    parser.add_argument("--size", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="timed steps per process")
    parser.add_argument("--child", choices=FORMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.child, args)))
        return
    result = {name: round(value, 4) for name, value in measure(args).items()}
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:36s} {value:10.3f}")


if __name__ == "__main__":
    main()
