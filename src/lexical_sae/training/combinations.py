"""Settings that are each in range but make no sense together, each refused with a sentence.

`warmup_fraction: 1` with circuit terms is no mistake: it is the baseline that never leaves warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator

from lexical_sae.training.expectations import part_of
from lexical_sae.training.settings import Settings


def _is_term(name: str) -> bool:
    part = part_of(Settings.model_fields[name])
    return part is not None and "weight" in part.model_fields


TERMS = tuple(name for name in Settings.model_fields if _is_term(name))


def terms_on(settings: Settings) -> list[str]:
    return [name for name in TERMS if getattr(settings, name) is not None]


def check_combinations(settings: Settings) -> None:
    """Raise `ValueError` for the first combination that makes no sense."""
    for checks in (_objective, _optimiser, _model):
        for message in checks(settings):
            raise ValueError(message)


def _objective(s: Settings) -> Iterator[str]:
    if s.start_words is not None and s.target_words > s.start_words:
        yield (
            f"target_words is {s.target_words} and start_words is {s.start_words}, but training "
            "only closes words; expected start_words of at least target_words."
        )
    if s.separation and s.separation.learn_margin and s.separation.form == "cosine":
        yield (
            "separation.learn_margin is true, but the cosine form has no margin; expected "
            "learn_margin: false or form: contrastive."
        )
    if s.separation and s.separation.learn_margin and s.separation.margin == 0:
        yield (
            "separation.margin is 0, but a margin that is learned starts above 0; expected a "
            "margin above 0 or learn_margin: false."
        )
    if s.completeness and s.circuit_fraction == 1:
        yield (
            "circuit_fraction is 1, so the circuit is every open word and completeness has "
            "nothing to teach; expected a fraction below 1 or completeness: null."
        )
    if s.weighting == "uncertainty" and not terms_on(s):
        yield (
            "weighting is 'uncertainty', but every term is off, so there is nothing to weigh; "
            "expected weighting: sum or a term."
        )
    if s.target_accuracy is not None and not s.constraint:
        yield (
            "target_accuracy is set, but constraint is false, so nothing would hold it; expected "
            "constraint: true or target_accuracy: null."
        )
    if s.constraint and s.warmup_fraction == 0 and s.target_accuracy is None and terms_on(s):
        yield (
            "warmup_fraction is 0, but the bound of the constraint is taken from warm-up; "
            "expected a fraction above 0 or constraint: false."
        )


def _optimiser(s: Settings) -> Iterator[str]:
    if s.optimizer == "schedule_free" and s.schedule != "constant":
        yield (
            f"schedule is {s.schedule!r}, but the optimizer schedule_free has none; expected "
            "schedule: constant."
        )
    if s.optimizer == "schedule_free" and s.weight_average is not None:
        yield (
            f"weight_average is {s.weight_average}, but the optimizer schedule_free averages the "
            "weights itself; expected weight_average: null."
        )
    for name in ("head_rate_factor", "gate_rate_factor"):
        rate = s.learning_rate * getattr(s, name)
        if rate > 1:
            yield (
                f"learning_rate {s.learning_rate:g} times {name} {getattr(s, name):g} is "
                f"{rate:g}; expected at most 1."
            )


def _model(s: Settings) -> Iterator[str]:
    if s.model.head != "mlp" and s.model.hidden_bias:
        why = "no hidden layer" if s.model.head == "linear" else "no biases"
        yield (
            f"model.hidden_bias is true, but the {s.model.head} head has {why}; expected "
            "hidden_bias: false or head: mlp."
        )
    if s.model.head != "bcos" and s.model.head_depth > 2:
        yield (
            f"model.head_depth is {s.model.head_depth}, but the head is {s.model.head}; expected "
            "head_depth: 2 or head: bcos."
        )
    if s.content is not None and s.model.positions == "content":
        yield (
            "content is on, but with model.positions: content words open at content words only, "
            "so the term has nothing to teach; expected content: null or positions: words."
        )
