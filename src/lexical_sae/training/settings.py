"""Every setting of a training run, with its range; recipes are named values of all of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Weight = Annotated[float, Field(ge=0, le=1000)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Completeness(Part):
    """The circuit alone must decide as the whole does."""

    form: Literal["kl", "ce"] = "kl"
    weight: Weight = 1.0
    temperature: Annotated[float, Field(gt=0, le=10)] = 0.1


class Separation(Part):
    """The circuits of different classes use different words."""

    form: Literal["contrastive", "cosine"] = "contrastive"
    weight: Weight = 1.0
    margin: Annotated[float, Field(ge=0, le=2)] = 0.1
    learn_margin: bool = False
    decay: Share = 1 - 2 / 21


class Sharpness(Part):
    """Few words carry most of the contribution."""

    weight: Weight = 1.0


class Sparsity(Part):
    """Few words are open."""

    form: Literal["target_l0", "target_l1", "l1_l0", "gate", "df_flops"] = "target_l1"
    weight: Weight = 1.0


class Frequency(Part):
    """Words that never open get a chance."""

    weight: Weight = 1.0
    decay: Share = 0.99
    cutoff: Share = 0.1


class Anchor(Part):
    """A coordinate stays about its word: contributions come from words that the untrained
    backbone opens for the same text too."""

    weight: Weight = 1.0
    texts: Annotated[int, Field(ge=1, le=1_000_000)] = 2048


class Content(Part):
    """Words open at the word that means them, not at a comma or an "is"."""

    weight: Weight = 1.0


class Guide(Part):
    """A dense head beside the words while training: it learns the task with `strength`, what it
    knows is handed to the words with `distillation`, and `contrast` draws the states of a class
    together that it reads."""

    strength: Annotated[float, Field(gt=0, le=100)] = 1.0
    distillation: Annotated[float, Field(ge=0, le=100)] = 1.0
    contrast: Annotated[float, Field(ge=0, le=100)] = 0.0


class Senses(Part):
    """Several senses for the words given, or for those whose contexts fall apart most; `balance`
    is the weight of the term that keeps all of them in use."""

    words: list[str] | None = None
    count: Annotated[int, Field(ge=2, le=9)] = 2
    most_words: Annotated[int, Field(ge=1, le=1000)] = 16
    texts: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    balance: Weight = 0.1


class ModelOptions(Part):
    """Options of `LexicalSAEConfig` that belong to a recipe."""

    dictionary: Literal["words", "texts", "all"] = "words"
    positions: Literal["words", "content"] = "words"
    gate: Literal["shift", "jump"] = "shift"
    window: Literal["rectangle", "sigmoid"] = "rectangle"
    window_width: Annotated[float, Field(gt=0, le=10)] = 0.5
    saturation: Literal["none", "log1p"] = "none"
    pooling: Literal["max", "attention"] = "max"
    head: Literal["mlp", "linear", "bcos"] = "mlp"
    head_width: Annotated[int, Field(ge=1, le=4096)] = 256
    hidden_bias: bool = False
    head_depth: Annotated[int, Field(ge=2, le=8)] = 2


class Settings(Part):
    """What a recipe fixes and a user may change; `null` switches a term off."""

    # what the user wants
    target_words: Annotated[int, Field(ge=1, le=10_000)] = 32
    target_accuracy: Share | None = None
    circuit_fraction: Annotated[float, Field(gt=0, le=1)] = 0.1

    # the objective
    completeness: Completeness | None = None
    separation: Separation | None = None
    sharpness: Sharpness | None = None
    sparsity: Sparsity | None = None
    frequency: Frequency | None = None
    anchor: Anchor | None = None
    content: Content | None = None
    guide: Guide | None = None
    senses: Senses | None = None
    circuit_positions: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    weighting: Literal["sum", "uncertainty"] = "sum"
    constraint: bool = True
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0

    # the run
    epochs: Annotated[float, Field(gt=0, le=1000)] = 2
    batch_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    gradient_accumulation_steps: Annotated[int, Field(ge=1, le=1024)] = 1
    max_length: Annotated[int, Field(ge=3, le=100_000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    warmup_fraction: Annotated[float, Field(ge=0, le=1)] = 0.2
    start_words: Annotated[int, Field(ge=1, le=100_000)] | None = None
    head_start: Annotated[int, Field(ge=0, le=100)] = 0
    early_stopping: Annotated[int, Field(ge=1, le=1000)] | None = None

    # the optimiser
    optimizer: Literal["adamw", "schedule_free"] = "adamw"
    schedule: Literal["cosine", "linear", "constant"] = "linear"
    learning_rate: Rate = 2e-4
    learning_rate_range_test: bool = False
    learning_rate_warmup: Annotated[float, Field(ge=0, lt=1)] = 0.06
    head_rate_factor: Annotated[float, Field(gt=0, le=1000)] = 10.0
    gate_rate_factor: Annotated[float, Field(gt=0, le=1000)] = 25.0
    dictionary_rate_factor: Annotated[float, Field(ge=0, le=1000)] = 1.0
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.01
    gradient_centralisation: bool = False
    max_gradient_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    weight_average: Share | None = None
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    freeze_embeddings: bool = False
    freeze_decoder: bool = False
    precision: Literal["fp32", "bf16", "auto"] = "fp32"

    model: ModelOptions = ModelOptions()
