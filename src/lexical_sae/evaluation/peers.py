"""The explainers that others use, each as scores [n] of the features of one decision.

LIME and SHAP see a game only (masks to probability), so the same code explains a head on its open
words and a whole model on the words of a text, and no text is ever put together and read again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexical_sae.evaluation.head_problem import HeadProblem
from lexical_sae.evaluation.perturbation import Floats, Game, Masks

LIME_SAMPLES, SHAP_SAMPLES, IG_STEPS = 500, 500, 50


def missing_package(name: str) -> ImportError:
    return ImportError(
        f'{name} is not installed; run pip install "lexical-sae[explainers]", or leave its '
        "comparison out."
    )


def lime_scores(game: Game, n: int, *, samples: int = LIME_SAMPLES, seed: int = 0) -> Floats:
    """LIME's text explainer on a text whose words are the numbers of the features."""
    try:
        from lime.lime_text import LimeTextExplainer
    except ImportError:
        raise missing_package("lime") from None
    names = [f"f{i}" for i in range(n)]

    def probabilities(texts: list[str]) -> Floats:
        masks = np.zeros((len(texts), n), dtype=np.bool_)
        for row, text in enumerate(texts):
            masks[row, [int(word[1:]) for word in text.split()]] = True
        p = game(masks)
        return np.stack([1 - p, p], axis=1)

    explainer = LimeTextExplainer(split_expression=r"\s+", random_state=seed)
    found = explainer.explain_instance(
        " ".join(names), probabilities, labels=(1,), num_features=n, num_samples=samples
    )
    scores = np.zeros(n)
    for word, weight in found.as_list(label=1):
        scores[int(word[1:])] = weight
    return scores


def shap_scores(game: Game, n: int, *, samples: int = SHAP_SAMPLES, seed: int = 0) -> Floats:
    """SHAP's kernel explainer, from no feature to all of them."""
    try:
        import shap
    except ImportError:
        raise missing_package("shap") from None

    def play(rows: NDArray[np.float64]) -> Floats:
        masks: Masks = np.asarray(rows) > 0.5
        return game(masks)

    before = np.random.get_state()
    np.random.seed(seed)
    try:
        explainer = shap.KernelExplainer(play, np.zeros((1, n)))
        found = explainer.shap_values(np.ones((1, n)), nsamples=samples, silent=True)
    finally:
        np.random.set_state(before)
    return np.asarray(found, dtype=np.float64).reshape(-1)[:n]


def masked_alone(game: Game, n: int) -> Floats:
    """What the probability loses without each feature alone (occlusion)."""
    masks: Masks = np.concatenate([np.ones((1, n), dtype=np.bool_), ~np.eye(n, dtype=np.bool_)])
    found = game(masks)
    lost: Floats = found[0] - found[1:]
    return lost


def random_scores(n: int, seed: int) -> Floats:
    return np.random.default_rng(seed).random(n)


def captum_integrated_gradients(problem: HeadProblem, *, steps: int = IG_STEPS) -> Floats:
    """captum's, on the head as a function of its open words."""
    import torch

    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise missing_package("captum") from None
    x = torch.ones(1, problem.words, dtype=torch.float64)
    found = IntegratedGradients(problem.torch_logits).attribute(
        x, baselines=torch.zeros_like(x), target=problem.winner, n_steps=steps
    )
    return np.asarray(found[0].detach().numpy())


def saliency(contributions: Floats, values: Floats) -> Floats:
    """|gradient| with respect to the activations: what a word would give if it were open by one."""
    return np.abs(contributions / values)
