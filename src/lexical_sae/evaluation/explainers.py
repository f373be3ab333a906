"""Step 6: our contributions and the explainers that others use, on the same decisions.

At the open words all of them explain the same head. At the input they explain whole models by
masking words; there the dense twin has its own table. AOPC may not be compared between two models,
NAOPC may, if it stands between the limits of each: those come from a beam search over orders. Every
evaluation at the input is a pass of a whole model, n² of them for n words. So where a text is long
NAOPC stands between the worst and the best of the orders tried instead, and then it ranks the
explainers of one model only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.attribution.words import position_contributions
from lexical_sae.evaluation.compared import Contest, Scorer
from lexical_sae.evaluation.faithfulness import head_game, head_keeps, problems_of, runner_up
from lexical_sae.evaluation.input_game import MaskedText, masked_text, word_scores
from lexical_sae.evaluation.input_peers import attention_scores, embedding_gradients
from lexical_sae.evaluation.peers import (
    captum_integrated_gradients,
    lime_scores,
    masked_alone,
    random_scores,
    saliency,
    shap_scores,
)
from lexical_sae.evaluation.perturbation import Floats, Remembered, limits
from lexical_sae.evaluation.reading import spread
from lexical_sae.evaluation.subject import Subject
from lexical_sae.model.mode import in_mode
from lexical_sae.report.finding import Finding

OURS = "contributions"
AT_OPEN_WORDS = "Explainers at the open words of the same head"
AT_INPUT = "Explainers of this model at the input"
OF_TWIN = "Explainers of the dense twin at the input"
AGAINST = "contributions against the runner-up"  # what decides, and so what a probability follows
PACKAGES = {"captum Integrated Gradients": "captum", "LIME": "lime", "SHAP": "shap"}
INPUT_SAMPLES = 150  # of LIME and SHAP at the input, where every sample is a pass of the model
INPUT_BEAM = 2  # of the limits at the input; 5 moves them by a hundredth of their distance
MOST_SEARCHED = 40  # words of a text whose limits are searched for
INPUT_SHARE = 0.4  # of the texts for slow explainers: there are several hundred passes for each
# Why others may be ahead, as far as the measure itself explains it.
WHY_AT_OPEN_WORDS = (
    "Contributions are exact parts of the logit as it is. LIME and SHAP look at the probability of "
    "many sets of words, as NAOPC does, and so see units that switch on the way."
)
WHY_AT_INPUT = (
    "Masking a word also changes which words its neighbours open. The word view adds up to the "
    "logit of the text as it is and says nothing of other texts, LIME and SHAP try them."
)


def compare_at_open_words(subject: Subject) -> Finding:
    """Every explainer on the head of every text; LIME and SHAP on some of them."""
    contest, reading = Contest(AGAINST, same_as=OURS), subject.taken_apart
    slow = set(spread(reading.rows, subject.peer_texts))
    values = reading.state.open_words
    offsets = values.offsets.tolist()
    for place, problem in problems_of(reading):
        game = head_game(problem)
        s = values.value[offsets[place] : offsets[place + 1]].double().numpy()
        slopes = problem.gradient_times_input()
        scorers: dict[str, Scorer] = {
            OURS: problem.contributions,
            AGAINST: partial(problem.contributions, runner_up(problem)),
            "exact Integrated Gradients": problem.integrated_gradients,
            "gradient × input": problem.gradient_times_input,
            "gradient (saliency)": partial(saliency, slopes, s),
            "random": partial(random_scores, problem.words, subject.seed + place),
        }
        if place in slow:
            # all words of a tag open at the same position; in windows a text has no one attention
            if not subject.tagging and not subject.model.config.windows:
                at = values.position[offsets[place] : offsets[place + 1]].numpy()
                scorers["attention"] = partial(_attention_at, subject, place, at)
            scorers |= _installed(
                {
                    "captum Integrated Gradients": partial(captum_integrated_gradients, problem),
                    "LIME": partial(lime_scores, game, problem.words, seed=subject.seed),
                    "SHAP": partial(shap_scores, game, problem.words, seed=subject.seed),
                }
            )
        contest.add(game, subject.limits[place], scorers, head_keeps(problem))
        subject.advance(1)
    return _finding(contest, AT_OPEN_WORDS, "; the slow explainers on fewer", WHY_AT_OPEN_WORDS)


def compare_at_input(subject: Subject, model: Any, title: str) -> Finding:
    """Explainers of one model (ours or the dense twin) by masking words of the input."""
    lexical = hasattr(model, "lexical")
    contest = Contest(AGAINST if lexical else "attention")
    places = subject.some_texts(input_texts(subject))
    texts = {place: masked_text(model, subject.test.texts[place]) for place in places}
    texts = {place: text for place, text in texts.items() if text.n >= 2}
    search = all(text.n <= MOST_SEARCHED for text in texts.values())  # of all, or means would mix
    for place, text in texts.items():
        scorers: dict[str, Scorer] = {}
        if lexical:
            scorers[OURS] = partial(own_words, text)
            scorers[AGAINST] = partial(own_words, text, contrastive=True)
        scorers["each word masked alone"] = partial(masked_alone, text, text.n)
        scorers["attention"] = _by_word(text, attention_scores)
        scorers |= input_explainers(text, subject.seed)
        scorers["random"] = partial(random_scores, text.n, subject.seed + place)
        between = limits(Remembered(text), text.n, beam=INPUT_BEAM) if search else None
        contest.add(text, between, scorers, text.keeps)
        subject.advance(1)
    note = "; NAOPC between the limits that a beam search finds for this model"
    if not search:
        note = (
            f"; a text has more than {MOST_SEARCHED} words, so NAOPC stands between the worst and "
            "the best of the orders tried, not to be compared with another model's"
        )
    return _finding(contest, title, note, WHY_AT_INPUT if lexical else "")


def input_texts(subject: Subject) -> int:
    """How many texts are explained by masking words of the input."""
    return max(1, round(INPUT_SHARE * subject.peer_texts))


def input_explainers(text: MaskedText, seed: int) -> dict[str, Scorer]:
    """The slow explainers of a whole model, by masking words."""
    sampled = {"samples": INPUT_SAMPLES, "seed": seed}
    return _installed(
        {
            "captum Integrated Gradients": _by_word(text, embedding_gradients),
            "LIME": partial(lime_scores, text, text.n, **sampled),
            "SHAP": partial(shap_scores, text, text.n, **sampled),
        }
    )


def _installed(scorers: dict[str, Scorer]) -> dict[str, Scorer]:
    """Without those whose package is missing: the others are compared all the same."""
    return {name: scorer for name, scorer in scorers.items() if name not in missing()}


@cache
def missing() -> tuple[str, ...]:
    return tuple(name for name, package in PACKAGES.items() if find_spec(package) is None)


def missing_note() -> tuple[str, ...]:
    if not missing():
        return ()
    return (
        f"Not installed, so not compared: {', '.join(missing())}; run pip install "
        '"lexical-sae[explainers]".',
    )


def _attention_at(subject: Subject, place: int, positions: Any) -> Floats:
    """[n]: the attention that the positions of a text receive which opened its words."""
    text = masked_text(subject.model, subject.test.texts[place])
    found: Floats = attention_scores(text)[positions]
    return found


def _by_word(text: MaskedText, tokens: Callable[[MaskedText], Floats]) -> Scorer:
    return lambda: word_scores(text.words, tokens(text))


def own_words(text: MaskedText, *, contrastive: bool = False) -> Floats:
    """Our word view: what each word of the input contributes (to the label, or more to it than to
    the runner-up), one pass of the model included."""
    import torch

    model = text.model
    with torch.no_grad(), in_mode(model, training=False):
        state = model.classify(text.ids[None], text.attention[None])
        attribution = compute_attribution_tensor(state, text.label)
        if contrastive and state.logits.shape[1] > 1:
            other = state.logits[0].clone()
            other[text.label] = -torch.inf
            attribution = attribution - compute_attribution_tensor(state, int(other.argmax()))
        scores = position_contributions(state, attribution, len(text.ids))[0]
    return word_scores(text.words, np.asarray(scores.double().numpy()))


def _finding(contest: Contest, title: str, note: str, why: str) -> Finding:
    notes = [f"{contest.texts:,} decisions{note}; p by paired sign flips"]
    ahead = contest.ahead()
    if ahead:
        reason = f" {why}" if why and {"LIME", "SHAP"} & set(ahead) else ""
        notes.append(
            f"Ahead of {contest.first} in mean NAOPC on the texts of both: "
            f"{', '.join(f'{name} (p {p:.2g})' for name, p in ahead.items())}.{reason}"
        )
    elif contest.texts:
        notes.append(f"None is ahead of {contest.first} in mean NAOPC on the texts of both.")
    tables = (contest.table(title), contest.removability(title))
    return Finding(tables=tables, notes=(*notes, *missing_note()))
