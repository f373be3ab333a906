"""What an explanation costs: against predicting alone, and against the explainers of a dense twin.

    python -m benchmarks.explain --json
    python -m benchmarks.explain --run runs/demo --texts 200

Ours: `explain_many` over all texts against `predict_texts` over the same, in turns, medians.
Peers explain the dense twin (the same backbone with a mean and a linear layer) text by text, each
with batches of its own (50 steps, 64 samples), on an even sample of the texts: captum's
LayerIntegratedGradients on the word embeddings with 50 steps, LIME with 500 samples, SHAP's
partition explainer with its default budget. The twin's head is not trained: that changes no time.
Ratios are per text; those that end in one_text are against `explain` on one text alone.
Certificates are timed on the same texts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lexical_sae.attribution.explain import explain, explain_many, explained_batches
from lexical_sae.certify.check import check_sufficient_reason
from lexical_sae.certify.flip import flip_set
from lexical_sae.certify.row_problem import row_problem
from lexical_sae.certify.sufficient import sufficient_reason
from lexical_sae.commands.demo import demo
from lexical_sae.model.dense_twin import DenseTwin
from lexical_sae.model.lexical_sae import LexicalSAE
from lexical_sae.predicting import predict_texts
from lexical_sae.runs import load_run
from lexical_sae.text.registry import load_splits
from lexical_sae.text.tokenise import encode
from lexical_sae.training.config import DEFAULT_BACKBONE

IG_STEPS, LIME_SAMPLES = 50, 500


def seconds(call: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def overhead(model: LexicalSAE, texts: Sequence[str], repeats: int) -> dict[str, float]:
    """Predicting and explaining in turns, so that a busy moment hits both."""
    explain_many(model, texts[:32])  # the hash of the weights is formed once per model
    predict, both = [], []
    for _ in range(repeats):
        predict.append(seconds(predict_texts, model, texts))
        both.append(seconds(explain_many, model, texts))
    alone = statistics.median(seconds(explain, model, text) for text in texts[:20])
    return {
        "predict_ms": 1000 * statistics.median(predict) / len(texts),
        "explain_ms": 1000 * statistics.median(both) / len(texts),
        "explain_one_ms": 1000 * alone,
        "overhead_vs_predict": statistics.median(b / p for p, b in zip(predict, both, strict=True)),
    }


class Peer:
    """The dense twin, as the explainers want it: texts in, probabilities out."""

    def __init__(self, twin: DenseTwin, max_tokens: int) -> None:
        self.twin, self.max_tokens = twin, max_tokens
        self.twin.train(False)

    def encoded(self, texts: Sequence[str]) -> Any:
        limit = self.max_tokens
        special = self.twin.config.special_token_ids
        return encode(self.twin.tokenizer, list(texts), limit, special, self.twin.device)

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        parts = []
        for start in range(0, len(texts), 64):
            # an explainer may hand over a text with every word taken out
            some = [str(text) or "." for text in texts[start : start + 64]]
            state = self.twin(**self.encoded(some).model_inputs())
            parts.append(state.logits.double().softmax(-1).numpy())
        return np.concatenate(parts)


def captum_ig(peer: Peer) -> Callable[[str], Any]:
    from captum.attr import LayerIntegratedGradients

    embeddings = peer.twin.backbone.get_input_embeddings()
    pad = peer.twin.tokenizer.pad_token_id

    def logit(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = peer.twin(ids, mask).logits
        return found

    explainer = LayerIntegratedGradients(logit, embeddings)

    def run(text: str) -> Any:
        inputs = peer.encoded([text]).model_inputs()
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        with torch.no_grad():
            target = int(logit(ids, mask).argmax())
        return explainer.attribute(
            ids,
            baselines=torch.full_like(ids, pad),
            additional_forward_args=(mask,),
            target=target,
            n_steps=IG_STEPS,
        )

    return run


def lime_text(peer: Peer) -> Callable[[str], Any]:
    from lime.lime_text import LimeTextExplainer

    explainer = LimeTextExplainer(class_names=list(peer.twin.config.labels), random_state=0)

    def run(text: str) -> Any:
        return explainer.explain_instance(text, peer.probabilities, num_samples=LIME_SAMPLES)

    return run


def shap_partition(peer: Peer) -> Callable[[str], Any]:
    import shap

    explainer = shap.Explainer(
        peer.probabilities, shap.maskers.Text(peer.twin.tokenizer), algorithm="partition"
    )

    def run(text: str) -> Any:
        return explainer([text], silent=True)

    return run


def certificates(model: LexicalSAE, texts: Sequence[str]) -> dict[str, float]:
    """Sufficient reasons, their checks and greedy flip sets over all texts."""
    times: list[float] = []
    checks: list[float] = []
    flips: list[float] = []
    sizes: list[int] = []
    for batch in explained_batches(model, texts):
        for row in range(len(batch.index)):
            start = time.perf_counter()
            problem = row_problem(batch.state, row)
            reason = sufficient_reason(problem)
            times.append(time.perf_counter() - start)
            flips.append(seconds(flip_set, problem))
            if reason is None:
                continue
            sizes.append(len(reason.coordinates))
            if len(checks) < 50:  # exact arithmetic is slower, and the same for every text
                start = time.perf_counter()
                assert check_sufficient_reason(batch.state, row, reason)
                checks.append(time.perf_counter() - start)
    return {
        "certify_ms": 1000 * statistics.median(times),
        "certify_slowest_ms": 1000 * max(times),
        "certified": len(sizes) / len(times),
        "certified_words": statistics.fmean(sizes) if sizes else 0.0,
        "check_ms": 1000 * statistics.median(checks) if checks else 0.0,
        "flip_ms": 1000 * statistics.median(flips),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peer-texts", type=int, default=10, help="texts that the peers explain")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    chosen = parser.parse_args()
    console = Console(stderr=True)
    if not chosen.run.exists():
        console.print(f"{chosen.run} was not found; training the demo's model into it")
        demo(chosen.run)
    model = load_run(chosen.run)
    texts = load_splits("movie_snippets")["test"].texts
    texts = texts[:: max(1, len(texts) // chosen.texts)][: chosen.texts]
    console.print(f"{len(texts)} texts, {torch.get_num_threads()} threads")
    result: dict[str, float] = overhead(model, texts, chosen.repeats)
    result |= certificates(model, texts)
    same = [e.to_json() for e in explain_many(model, texts)]
    result["bitwise_same"] = float(same == [e.to_json() for e in explain_many(model, texts)])
    twin = DenseTwin.from_backbone(DEFAULT_BACKBONE, model.config.labels)
    peer = Peer(twin, model.config.max_tokens)
    some = texts[:: max(1, len(texts) // chosen.peer_texts)][: chosen.peer_texts]
    for name, build in (
        ("captum_ig", captum_ig),
        ("lime", lime_text),
        ("shap", shap_partition),
    ):
        run = build(peer)
        run(some[0])
        each = statistics.median(seconds(run, text) for text in some)
        result[f"{name}_ms"] = 1000 * each
        result[f"speedup_vs_{name}"] = 1000 * each / result["explain_ms"]
        result[f"speedup_vs_{name}_one_text"] = 1000 * each / result["explain_one_ms"]
        console.print(f"{name}: {1000 * each:,.0f} ms per text")
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in result.items():
        table.add_row(name, f"{value:,.3f}")
    console.print(table)
    if chosen.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
