"""Is the explanation of a tag the same for the same sentence always?"""

from __future__ import annotations

from lexical_sae.attribution.tag_explanation import TagExplanation
from lexical_sae.attribution.tags import explain_tags
from lexical_sae.evaluation.subject import Subject
from lexical_sae.report.finding import Estimate, Finding

REPEATED = 50  # sentences that are explained twice


def measure_tag_stability(subject: Subject) -> Finding:
    """Twice the same call, and every sentence alone and among others."""
    sentences = [subject.test.tokens[i] for i in subject.some_texts(REPEATED)]
    first, second = (explain_tags(subject.model, sentences) for _ in range(2))
    same = [a.to_json() == b.to_json() for a, b in zip(first, second, strict=True)]
    apart = 0.0
    for words, among in zip(sentences, first, strict=True):
        apart = max(apart, _difference(explain_tags(subject.model, [words])[0], among))
    return Finding(
        metrics={
            "same_explanation": Estimate(sum(same) / len(same)),
            "batch_difference": Estimate(apart),
        },
        notes=(f"{len(sentences):,} sentences",),
    )


def _difference(first: TagExplanation, second: TagExplanation) -> float:
    """The largest difference of what a dictionary word gives a token; tokens whose tag differs
    have different sums and count with all of theirs."""
    largest = 0.0
    for a, b in zip(first.tokens, second.tokens, strict=True):
        one = {word.coordinate: word.contribution for word in a.vocabulary}
        other = {word.coordinate: word.contribution for word in b.vocabulary}
        for word in one.keys() | other.keys():
            largest = max(largest, abs(one.get(word, 0.0) - other.get(word, 0.0)))
    return largest
