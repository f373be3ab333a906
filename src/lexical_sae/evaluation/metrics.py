"""Every number that an evaluation reports, with its meaning, range and direction."""

from __future__ import annotations

import math

from lexical_sae.report.finding import Estimate, Metric

_BIG = math.inf

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        # identity
        Metric("residual_mean", "mean |sum of contributions − logit|", 0, _BIG, "lower"),
        Metric("residual_p99", "its 99th percentile over decisions", 0, _BIG, "lower"),
        Metric("residual_max", "its largest value", 0, _BIG, "lower"),
        Metric("residual_mean_fp64", "the mean in double precision", 0, _BIG, "lower"),
        Metric("residual_p99_fp64", "the 99th percentile in double precision", 0, _BIG, "lower"),
        Metric("residual_max_fp64", "the largest value in double precision", 0, _BIG, "lower"),
        Metric("residual_relative", "largest residual over its scale", 0, _BIG, "lower"),
        # accuracy and size
        Metric("accuracy", "share of texts with the right label"),
        Metric("open_words", "mean number of open words", 0, _BIG, "lower"),
        Metric("entity_f1", "F1 of entities, span and type right"),
        Metric("entity_precision", "share of the entities found that are right"),
        Metric("entity_recall", "share of the right entities that are found"),
        Metric("token_accuracy", "share of words with the right tag"),
        # circuits
        Metric("circuit_words", "mean size of a class's circuit", 0, _BIG, "neither"),
        Metric("circuit_share", "share of a class's attribution in its circuit"),
        # completeness
        Metric("agreement_at_10", "decisions kept by 10 % of the open words"),
        Metric("kappa_at_10", "the same beyond chance (Cohen's kappa)", -1, 1),
        Metric("agreement_area", "area under agreement from 1 to 50 % of the words"),
        # separation
        Metric("class_cosine", "mean cosine of two classes' attributions", 0, 1, "lower"),
        Metric("class_jaccard", "mean overlap of two classes' circuits", 0, 1, "lower"),
        # faithfulness at the open words
        Metric("comprehensiveness", "AOPC when the top words go (ERASER)", -1, 1),
        Metric("sufficiency", "AOPC when only the top words stay (ERASER)", -1, 1, "lower"),
        Metric("naopc", "AOPC between the model's own limits, words removed in order"),
        Metric("naopc_reversed", "the same in reversed order", 0, 1, "lower"),
        Metric("flip_rate_at_10", "decisions that change without the top 10 %"),
        Metric(
            "removal_error", "mean |realised − predicted| change of the logit", 0, _BIG, "lower"
        ),
        Metric("removal_correlation", "of predicted and realised change", -1, 1),
        Metric("units_flipped", "hidden units that switch when a word goes", 0, _BIG, "lower"),
        # layers, scaling, calibration
        Metric("layer_residual", "largest |sum of the layers' parts − logit|", 0, _BIG, "lower"),
        Metric(
            "ablation_sparsity", "words that an effect spreads over, (L1/L2)²", 0, _BIG, "lower"
        ),
        Metric("probe_loss", "cross-entropy of the best single word", 0, _BIG, "lower"),
        Metric("downstream_loss", "cross-entropy against the dense twin's", -_BIG, _BIG, "lower"),
        Metric("plausibility_auprc", "precision and recall against human marks"),
        Metric("same_explanation", "texts explained twice bit by bit alike"),
        Metric("batch_difference", "largest change of a word among other texts", 0, _BIG, "lower"),
        Metric("synonym_movement", "1 − cosine when a synonym is put in", 0, 2, "lower"),
        Metric("own_word_share", "contribution from words of the text itself", better="neither"),
        Metric("untrained_share", "contribution from words the untrained model opens too"),
        Metric("ece", "expected calibration error", 0, 1, "lower"),
    )
}


def checked(metrics: dict[str, Estimate]) -> dict[str, Estimate]:
    """The same, once every name is known and every value is in its range."""
    for name, estimate in metrics.items():
        if name not in METRICS:
            raise ValueError(f"{name} is not a metric; declare it in evaluation/metrics.py.")
        if estimate.value is not None:
            METRICS[name].check(estimate.value)
    return metrics
