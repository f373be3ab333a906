"""Which words have several senses: those whose contexts fall into groups.

k-means always finds groups. So its silhouette is compared with that of a single Gaussian cloud with
the same mean and covariance: what is left is how far the contexts are from one cloud.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexical_sae.model.sense_contexts import Contexts

FEWEST = 20  # contexts of a word, for a choice among words
MOST_CONTEXTS = 200  # of a word that are looked at
MOST_CANDIDATES = 2000  # words that are looked at, the most frequent

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordChoice:
    """A word and how far its contexts fall apart: `score` = `silhouette` − `one_cloud`."""

    coordinate: int
    contexts: int
    silhouette: float
    one_cloud: float

    @property
    def score(self) -> float:
        return self.silhouette - self.one_cloud


def choose_words(
    contexts: Contexts, most_words: int, *, senses: int = 2, fewest: int = FEWEST, seed: int = 0
) -> list[WordChoice]:
    """At most so many words with a score above 0, the largest first."""
    counts = contexts.counts()
    often = sorted((-n, word) for word, n in counts.items() if n >= max(fewest, 2 * senses))
    candidates = [word for _, word in often[:MOST_CANDIDATES]]
    scored = [score_word(contexts, word, senses=senses, seed=seed) for word in candidates]
    scored = [choice for choice in scored if choice.score > 0]
    return sorted(scored, key=lambda choice: (-choice.score, choice.coordinate))[:most_words]


def score_word(contexts: Contexts, word: int, *, senses: int = 2, seed: int = 0) -> WordChoice:
    states = contexts.of(word, MOST_CONTEXTS).double().numpy()
    draw = np.random.default_rng([seed, word])
    centred = states - states.mean(0)
    # rows of normal numbers times the data have the data's own covariance
    cloud = draw.standard_normal((len(states), len(states))) @ centred / np.sqrt(len(states))
    number = int(contexts.counts()[word])
    return WordChoice(word, number, _silhouette(states, senses), _silhouette(cloud, senses))


def _silhouette(states: Floats, groups: int) -> float:
    from sklearn.metrics import silhouette_score

    label = cluster(states, groups)[1]
    if len(np.unique(label)) < 2:
        return 0.0
    return float(silhouette_score(states, label))


def cluster(states: Floats, groups: int) -> tuple[Floats, NDArray[np.int64]]:
    """Centroids [groups, H] and the group of each state [n], the largest group first."""
    import warnings

    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise ImportError(
            "Senses are found by k-means, which needs the package scikit-learn; run pip install "
            '"lexical-sae[training]".'
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # contexts that are all the same have fewer groups
        fitted = KMeans(groups, n_init=4, random_state=0).fit(states)
    sizes = np.bincount(fitted.labels_, minlength=groups)
    order = np.argsort(-sizes, kind="stable")
    place = np.argsort(order)
    return fitted.cluster_centers_[order], place[fitted.labels_]


TYPICAL_MARGIN = 2.0  # of the best over the second score: a softmax of about 0.88


def fit_route(states: Tensor, senses: int) -> tuple[Tensor, Tensor]:
    """R [M, H] and r [M] whose largest score is at the nearest of M centroids of states [n, H].

    −|h − c|² is linear in h but for a part that all senses share: 2c·h − |c|². A common scale
    moves no choice; it is set so that the softmax is neither flat nor so sharp that it has no
    gradient.
    """
    found, _ = cluster(states.double().numpy(), senses)
    centroids = torch.from_numpy(found)
    centroids = centroids - centroids.mean(0)  # the same choice, from smaller numbers
    middle = torch.from_numpy(found).mean(0)
    R, r = 2 * centroids, -2 * centroids @ middle - centroids.square().sum(1)
    best = (states.double() @ R.T + r).topk(2, dim=1).values
    margin = float((best[:, 0] - best[:, 1]).mean())
    scale = TYPICAL_MARGIN / margin if margin > 0 else 1.0
    return (scale * R).to(states.dtype), (scale * r).to(states.dtype)
