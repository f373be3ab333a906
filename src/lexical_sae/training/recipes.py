"""The named recipes: three published systems, mended, and our own, chosen by measurement.

What was mended, and why, is in docs/recipes.md; the measurements are in docs/choices.md.
"""

from __future__ import annotations

from lexical_sae.training.settings import (
    Anchor,
    Completeness,
    Frequency,
    Guide,
    ModelOptions,
    Separation,
    Settings,
    Sharpness,
    Sparsity,
)

DEFAULT = Settings(
    completeness=Completeness(form="kl", weight=0.2),
    separation=Separation(form="cosine", weight=0.2),
    sparsity=Sparsity(form="target_l1"),
    anchor=Anchor(weight=0.2, texts=512),
    # a word's gradient reaches one position only and is noisy: most of what the backbone learns by
    # is the guide's, as it is for the dense twin
    guide=Guide(strength=3.0, contrast=1.0),
    start_words=400,
    learning_rate=2e-4,
    # the lexical head stays what it was before training: its words keep their meaning
    dictionary_rate_factor=0,
    head_rate_factor=5,
    gate_rate_factor=5,
    # words that the texts use: half the cost of a step's product, at no cost in the loss
    model=ModelOptions(dictionary="texts", positions="content"),
)

# A tag is decided at its own word: words open at every position, and there are ten times as many
# decisions as texts, each with fewer words. The transform before the decoder learns; the decoder's
# rows stay as they are, which takes a tenth off a step (docs/results.md).
TAGGING = DEFAULT.model_copy(
    update={
        "target_words": 34,
        "word_dropout": 0.1,
        "start_words": 128,
        "dictionary_rate_factor": 1.0,
        "freeze_decoder": True,
        "guide": Guide(),  # a stronger one took the words from their meaning and brought nothing
        "epochs": 3,
        "batch_size": 16,
        "model": ModelOptions(dictionary="texts", positions="words"),
    }
)

# What the published systems share: the whole vocabulary, a hidden layer of 256 with biases, label
# smoothing, gradient centralisation, 50 epochs with patience 10. All is spelled out, so that they
# stay what they are when the defaults of `Settings` change.
_PUBLISHED_MODEL = ModelOptions(
    dictionary="all",
    positions="words",
    gate="shift",
    window="rectangle",
    window_width=0.5,
    saturation="log1p",
    pooling="max",
    head="mlp",
    head_width=256,
    hidden_bias=True,
)
_PUBLISHED = Settings(
    target_words=150,
    circuit_fraction=0.1,
    warmup_fraction=0.2,
    constraint=True,
    label_smoothing=0.1,
    epochs=50,
    early_stopping=10,
    learning_rate_warmup=0.06,
    head_rate_factor=1,
    gate_rate_factor=1,
    weight_decay=0.01,
    gradient_centralisation=True,
    max_gradient_norm=1.0,
    model=_PUBLISHED_MODEL,
)

CIS = _PUBLISHED.model_copy(
    update={
        "completeness": Completeness(form="ce"),
        "separation": Separation(form="cosine"),
        "sharpness": Sharpness(),
        "sparsity": Sparsity(form="df_flops"),
        "weighting": "uncertainty",
        "schedule": "cosine",
        "learning_rate": 3e-5,
        "learning_rate_range_test": True,
        "weight_average": 0.999,
    }
)

LEXICAL_SAE = CIS.model_copy(
    update={
        "sharpness": None,
        "sparsity": Sparsity(form="l1_l0"),
        "weighting": "sum",
        "gate_rate_factor": 5.0,
    }
)

CAJT = _PUBLISHED.model_copy(
    update={
        "completeness": Completeness(form="kl"),
        "separation": Separation(form="contrastive", margin=0.1, learn_margin=True),
        "sparsity": Sparsity(form="gate"),
        "frequency": Frequency(),
        "optimizer": "schedule_free",
        "schedule": "constant",
        "learning_rate": 3e-4,
        "weight_decay": 3e-5,  # 0.1 · learning rate
        "model": _PUBLISHED_MODEL.model_copy(
            update={"gate": "jump", "window": "sigmoid", "saturation": "none"}
        ),
    }
)

RECIPES = {
    "default": DEFAULT,
    "tagging": TAGGING,
    "cis": CIS,
    "lexical-sae": LEXICAL_SAE,
    "cajt": CAJT,
}
