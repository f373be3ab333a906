"""Two processes with half of the batch each: the terms and gradients of one with all of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from lexical_sae.training.distributed import mean_over_processes, sum_over_processes
from lexical_sae.training.losses.anchor import anchor
from lexical_sae.training.losses.centroids import ClassCentroids
from lexical_sae.training.losses.frequencies import OpenRates
from lexical_sae.training.losses.margin import LearnedMargin
from lexical_sae.training.losses.separation import separation_contrastive, separation_cosine
from lexical_sae.training.losses.sharpness import sharpness
from lexical_sae.training.losses.sparsity import df_flops, gate_sparsity, l1_l0
from lexical_sae.training.losses.target import target_l0, target_l1
from lexical_sae.training.losses.weighting import UncertaintyWeights
from tests.training.pairs import sparse

ROWS, SIZE, WORDS, CLASSES = 8, 4, 6, 3
SCENES = ("ordinary", "padding", "one half opens nothing")


def _terms(scene: str, part: slice) -> dict[str, Tensor]:
    """Value, gradient and state of every term on a part of a fixed batch, by name."""
    make = torch.Generator().manual_seed(5)
    x = torch.randn(ROWS, SIZE, generator=make, dtype=torch.float64)
    W = torch.randn(SIZE, WORDS, generator=make, dtype=torch.float64, requires_grad=True)
    u = torch.randn(WORDS, generator=make, dtype=torch.float64, requires_grad=True)
    theta = torch.full((WORDS,), 0.2, dtype=torch.float64, requires_grad=True)
    row_class = torch.arange(ROWS) % CLASSES
    rows = None
    if scene == "padding":  # four real rows in one half, two in the other
        rows = torch.tensor([True, True, True, True, False, True, False, True])[part]
    z = x[part] @ W  # [rows, V]
    value = torch.relu(z - theta)
    kept = z > -0.3
    if scene == "one half opens nothing":
        kept = kept & (torch.arange(ROWS) < ROWS // 2)[part, None]
    words = sparse(value, kept, z)
    a = words.value * u[words.word]
    row_class = row_class[part]

    centroids, rates = ClassCentroids(CLASSES, WORDS).double(), OpenRates(WORDS).double()
    margin, weights = LearnedMargin(0.3).double(), UncertaintyWeights(["x", "y"]).double()
    for factor in (1.0, 2.0):  # two updates: a first value and a running mean
        centroids.update(factor * a.detach(), words, (row_class * int(factor)) % CLASSES, rows)
        rates.update(words, rows)
    frequency = torch.arange(1.0, WORDS + 1, dtype=torch.float64)
    inside = words.word % 2 == 0
    terms = {
        "df_flops": df_flops(words, frequency, rows),
        "target_l1": target_l1(words, 9.0, 3.0, rows),
        "target_l0": target_l0(words, theta, 0.5, 9.0, 3.0, rows),
        "cosine": separation_cosine(a, words, row_class, centroids, rows),
        "contrastive": separation_contrastive(a, words, row_class, centroids, margin, rows),
        "sharpness": sharpness(a, words, rows),
        "l1_l0": l1_l0(words, rows=rows),
        "gate": gate_sparsity(words, theta, 0.5, rows),
        "anchor": anchor(a, inside, words, rows),
    }
    terms["weighted"] = weights.combine({"x": terms["df_flops"], "y": terms["sharpness"]})
    found = {"centroids": centroids.mean, "seen": centroids.seen.double(), "rates": rates.rate}
    # m enters nonlinearly and differently on each process; still the gradient must be right
    local = (value.sum(1) * mean_over_processes(value.mean()).square()).mean()
    terms["mixed"] = local
    # not averaged by DDP here, so that they must come out equal without it
    alone = [margin.raw, weights.v]
    for name, term in terms.items():
        own, *rest = [W, u, theta], *alone
        grads = torch.autograd.grad(term, own + rest, retain_graph=True, allow_unused=True)
        for label, grad in zip(("W", "u", "theta"), grads[:3], strict=True):
            if grad is not None:
                found[f"{name}/averaged/{label}"] = grad
        for label, grad in zip(("margin", "v"), grads[3:], strict=True):
            if grad is not None:
                found[f"{name}/equal/{label}"] = grad
        found[f"{name}/averaged/value"] = term.detach()
    return found


def _worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    half = ROWS // 2
    part = slice(rank * half, (rank + 1) * half)
    found = {f"{s}/{k}": v for s in SCENES for k, v in _terms(s, part).items()}
    x = torch.tensor(float(rank + 1))
    found["sum"], found["mean"] = sum_over_processes(x), mean_over_processes(x)
    found["untouched"] = x
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Tensor]]:
    folder: Path = tmp_path_factory.mktemp("processes")
    mp.spawn(_worker, args=(str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("scene", SCENES)
def test_two_halves_equal_the_whole(scene: str, halves: list[dict[str, Tensor]]) -> None:
    whole = _terms(scene, slice(None))
    assert {f"{scene}/{k}" for k in whole} == {k for k in halves[0] if k.startswith(scene)}
    for name, expected in whole.items():
        first, second = (half[f"{scene}/{name}"] for half in halves)
        if "/averaged/" in name:  # as DDP does
            first = second = (first + second) / 2
        for found in (first, second):
            torch.testing.assert_close(found, expected, msg=lambda m, n=name: f"{n}: {m}")


def test_halves_differ_enough_for_the_comparison_to_mean_something() -> None:
    whole = _terms("padding", slice(None))
    parts = [_terms("padding", slice(0, 4)), _terms("padding", slice(4, 8))]
    for name in ("df_flops", "cosine", "target_l1", "sharpness"):
        key = f"{name}/averaged/W"
        naive = (parts[0][key] + parts[1][key]) / 2  # each with the statistics of its own half
        assert not torch.allclose(naive, whole[key], rtol=1e-3)


def test_sums_and_means(halves: list[dict[str, Tensor]]) -> None:
    for rank, half in enumerate(halves):
        assert (float(half["sum"]), float(half["mean"])) == (3.0, 1.5)
        assert float(half["untouched"]) == rank + 1
    x = torch.rand(3, requires_grad=True)
    assert mean_over_processes(x) is x
    assert sum_over_processes(x) is x
