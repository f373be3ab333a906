"""The training objective: the task loss under GECO, the terms of the settings, and their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lexical_sae.attribution.contributions import compute_attribution_tensor
from lexical_sae.model.gate import nonnegative_threshold
from lexical_sae.model.lexical_layer import LexicalLayer, by_word
from lexical_sae.model.open_words import OpenWords
from lexical_sae.model.state import CircuitState
from lexical_sae.training.combinations import terms_on
from lexical_sae.training.decisions import Batch, sample_rows
from lexical_sae.training.density import DensityControl, above_half
from lexical_sae.training.distributed import mean_over_processes, share_of_rows
from lexical_sae.training.geco import GECOController
from lexical_sae.training.guide import DenseGuide
from lexical_sae.training.losses.anchor import anchor
from lexical_sae.training.losses.balance import SenseLoads
from lexical_sae.training.losses.centroids import ClassCentroids
from lexical_sae.training.losses.completeness import completeness
from lexical_sae.training.losses.content import content
from lexical_sae.training.losses.frequencies import OpenRates, frequency_penalty
from lexical_sae.training.losses.margin import LearnedMargin
from lexical_sae.training.losses.rows import row_count
from lexical_sae.training.losses.separation import separation_contrastive, separation_cosine
from lexical_sae.training.losses.sharpness import sharpness
from lexical_sae.training.losses.sparsity_form import TARGETED, sparsity_term
from lexical_sae.training.losses.weighting import UncertaintyWeights
from lexical_sae.training.reference import Reference
from lexical_sae.training.settings import Settings


class Objective(nn.Module):
    """Warm-up on the task loss alone, then all terms with the multiplier of `GECOController`.

    `forward` gives the loss of one (micro-)batch; `finish_step` is called once per optimiser step
    and moves the controllers. Tensors of the state are buffers and parameters of this module,
    numbers are in `numbers()`; both belong to a checkpoint.
    """

    def __init__(
        self,
        settings: Settings,
        lexical: LexicalLayer | None,
        classes: int,
        *,
        steps_per_epoch: int,
        steps: int,
        reference: Reference | None = None,
        guide: DenseGuide | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.steps = steps
        self.warmup_steps = min(steps, max(1, round(settings.warmup_fraction * steps)))
        self.step = 0
        self.reference = reference
        self.guide = guide
        # in a tuple: the model's parameters are not the objective's
        self._lexical: tuple[LexicalLayer, ...] = () if lexical is None else (lexical,)
        words = 0 if lexical is None else lexical.keep.numel()
        self.terms = terms_on(settings)
        if self.terms and lexical is None:
            raise ValueError(
                f"A dense model has no words, so {self.terms[0]} has no meaning for it."
            )
        if "anchor" in self.terms and reference is None:
            raise ValueError("The anchor needs the words that the untrained model opens.")
        self.geco = GECOController(steps_per_epoch, target_words=settings.target_words)
        start_words = settings.start_words or 4 * settings.target_words
        self.density = DensityControl(settings.target_words, start_words)
        self.centroids: ClassCentroids | None = None
        self.margin: LearnedMargin | None = None
        if settings.separation is not None:
            self.centroids = ClassCentroids(classes, words, settings.separation.decay)
            if settings.separation.learn_margin:
                self.margin = LearnedMargin(settings.separation.margin)
        self.rates: OpenRates | None = None
        needs_rates = settings.sparsity is not None and settings.sparsity.form == "df_flops"
        if settings.frequency is not None or needs_rates:
            self.rates = OpenRates(words, settings.frequency.decay if settings.frequency else 0.99)
        self.weights = (
            UncertaintyWeights(self.terms) if settings.weighting == "uncertainty" else None
        )
        senses = None if lexical is None else lexical.senses
        sparsity = settings.sparsity
        self.has_target = sparsity is not None and sparsity.form in TARGETED
        self.loads = None if senses is None else SenseLoads(len(senses.words), senses.senses)
        self.recent_ce: float | None = None  # running mean over training batches
        self._seen: list[dict[str, float]] = []

    @property
    def in_circuit_phase(self) -> bool:
        return self.step >= self.warmup_steps and bool(self.terms)

    @property
    def has_circuit_steps(self) -> bool:
        """Whether the weights have seen the circuit phase: not yet right after the warm-up."""
        return self.in_circuit_phase and self.step > self.warmup_steps

    def task_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=self.settings.label_smoothing)

    def forward(self, state: CircuitState, batch: Batch, usual_rows: float | None = None) -> Tensor:
        """`usual_rows`: the mean number of decisions of the batches that make one step, where they
        differ; CE is then a mean over all decisions of the step."""
        rows = len(batch.labels)
        share = share_of_rows(rows, rows if usual_rows is None else usual_rows, state.logits.device)
        ce = share * self.task_loss(state.logits, batch.labels)
        seen = {"ce": ce.detach()}
        if self._lexical:
            seen["open_words"] = share * state.open_words.counts().float().mean()
        total = ce
        if self.in_circuit_phase:
            sampled, rows_of_it = self._sampled(state, batch)
            if self.settings.word_dropout > 0:
                # the terms are about what the model says, not about what noise made of it; they
                # take its logits as given
                with torch.no_grad():
                    sampled = sampled.with_open_words(sampled.open_words)
            number = self._open_now(sampled.open_words)
            terms = self._terms(sampled, rows_of_it, number)
            seen |= {name: value.detach() for name, value in terms.items()}
            circuit = self._combined(terms, number)
            total = circuit + (self.geco.multiplier if self.settings.constraint else 1.0) * ce
        else:
            if self.rates is not None:
                self.rates.update(state.open_words)
            if self.has_target and self.density.crowded:
                total = total + self._held(state, batch)
        if self.guide is not None and batch.dense_states is not None:
            said = self.guide(batch.dense_states, state.logits, batch.labels)
            seen |= {"guide": share * said.ce.detach(), "distillation": share * said.gap.detach()}
            own = share * said.ce
            if said.contrast is not None:
                seen["contrast"] = said.contrast.detach()
                own = own + self.guide.contrast * said.contrast
            total = total + self.guide.strength * own + share * self.guide.distillation * said.gap
        if self.loads is not None and self.settings.senses is not None:
            assert state.open_words.routes is not None
            balance = self.loads(state.open_words.routes)
            seen["balance"] = balance.detach()
            total = total + self.settings.senses.balance * balance
        seen["loss"] = total.detach()
        means = mean_over_processes(torch.stack(list(seen.values())).double()).tolist()
        self._seen.append(dict(zip(seen, means, strict=True)))
        return total

    def _sampled(self, state: CircuitState, batch: Batch) -> tuple[CircuitState, Batch]:
        """The decisions that the terms look at: all texts of a batch, or some of its words."""
        most = self.settings.circuit_positions
        chosen = sample_rows(len(batch.labels), most, batch.labels.device) if batch.words else None
        if chosen is None:
            return state, batch
        return state.at_rows(chosen), batch.at_rows(chosen)

    def _terms(self, state: CircuitState, batch: Batch, number: float) -> dict[str, Tensor]:
        """Every term that is switched on, unweighted; `number` of words are open."""
        settings, open_words = self.settings, state.open_words
        predicted = state.predicted
        attribution = compute_attribution_tensor(state, row_classes=predicted)  # [P]
        values: dict[str, Tensor] = {}
        if settings.completeness is not None:
            values["completeness"] = completeness(
                state,
                attribution,
                batch.labels,
                form=settings.completeness.form,
                fraction=settings.circuit_fraction,
                temperature=settings.completeness.temperature,
            )
        if settings.separation is not None:
            assert self.centroids is not None
            if settings.separation.form == "cosine":
                values["separation"] = separation_cosine(
                    attribution, open_words, predicted, self.centroids
                )
            else:
                margin = self.margin if self.margin is not None else settings.separation.margin
                values["separation"] = separation_contrastive(
                    attribution, open_words, predicted, self.centroids, margin
                )
            # after the term: before it, every row would be compared with itself
            self.centroids.update(attribution, open_words, predicted)
        if settings.sharpness is not None:
            values["sharpness"] = sharpness(attribution, open_words)
        if self.rates is not None:
            self.rates.update(open_words)
        if settings.sparsity is not None:
            values["sparsity"] = self._sparsity(open_words, number)
        if settings.frequency is not None:
            assert self.rates is not None
            values["frequency"] = frequency_penalty(
                self.rates.rate,
                nonnegative_threshold(self._lexical[0].threshold),
                self._lexical[0].spread,
                target_words=settings.target_words,
                cutoff=settings.frequency.cutoff,
                open_ema=self._open_ema(),
                keep=self._lexical[0].keep,
            )
        if settings.anchor is not None:
            assert self.reference is not None
            plain = by_word(self._lexical[0], open_words)
            inside = self.reference.words.contains(batch.place, plain)
            known = self.reference.knows(batch.index)
            values["anchor"] = anchor(attribution, inside, open_words, known)
        if settings.content is not None:
            assert batch.content_mask is not None
            at_content = batch.content_mask[open_words.row, open_words.position]
            values["content"] = content(attribution, at_content, open_words)
        return values

    def _held(self, state: CircuitState, batch: Batch) -> Tensor:
        """The sparsity term alone, in the warm-up."""
        assert self.settings.sparsity is not None
        sampled, _ = self._sampled(state, batch)
        number = self._open_now(sampled.open_words)
        pressure = self.density.pressure * self.settings.sparsity.weight
        return pressure * self._sparsity(sampled.open_words, number)

    def _sparsity(self, open_words: OpenWords, number: float) -> Tensor:
        assert self.settings.sparsity is not None
        form, aim = self.settings.sparsity.form, self.density.aim
        return sparsity_term(open_words, self._lexical[0], form, number, aim, self.rates)

    def _open_ema(self) -> float:
        return self.density.open_words if self.density.open_words is not None else 0.0

    def _open_now(self, open_words: OpenWords) -> float:
        """Words open per decision. The running mean lags: without a look at this batch a term goes
        on closing words until none is left, and what is closed has no gradient to open again."""
        counts = open_words.counts().float()
        live = mean_over_processes(counts.sum()) / row_count(counts, None)
        return min(self._open_ema(), float(live))

    def _combined(self, terms: Mapping[str, Tensor], number: float) -> Tensor:
        weighted = {
            name: getattr(self.settings, name).weight * value for name, value in terms.items()
        }
        # These know no target and would not stop at it: they fade from the target to half of it,
        # or cis closes every word within twenty steps.
        fading = {"sharpness", "sparsity"} & {*weighted}
        if self.has_target:
            weighted["sparsity"] = self.density.pressure * weighted["sparsity"]
            fading -= {"sparsity"}
        for name in fading:
            weighted[name] = above_half(number, self.settings.target_words) * weighted[name]
        if self.weights is not None:
            return self.weights.combine(weighted)
        return torch.stack(list(weighted.values())).sum()

    def finish_step(self) -> dict[str, float]:
        """After each optimiser step: move the controllers; what was seen, for the log."""
        seen = {
            name: sum(part[name] for part in self._seen) / len(self._seen) for name in self._seen[0]
        }
        self._seen.clear()
        was_circuit_phase = self.in_circuit_phase
        if self._lexical:
            self.density.observe(seen["open_words"])
        before = seen["ce"] if self.recent_ce is None else self.recent_ce
        self.recent_ce = 0.95 * before + 0.05 * seen["ce"]
        if was_circuit_phase:
            self.geco.update(seen["ce"], self.density.open_words)
            self.density.update((self.step - self.warmup_steps) / max(1, self._circuit_steps))
        else:
            self.geco.warm_up(seen["ce"])
            if self.has_target:
                self.density.update(0.0)
        self.step += 1
        self._end_warmup_if_due()
        seen["phase"] = float(was_circuit_phase)
        if was_circuit_phase:
            seen["multiplier"] = self.geco.multiplier
            seen["bound"] = self.geco.relaxed_bound(self.density.open_words)
            seen["pressure"] = self.density.pressure
        return seen

    def _end_warmup_if_due(self) -> None:
        if self.in_circuit_phase and not self.geco.started:
            self.geco.start()
            self.density.begin()

    @property
    def _circuit_steps(self) -> int:
        return self.steps - self.warmup_steps

    def numbers(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "recent_ce": self.recent_ce,
            "geco": self.geco.state_dict(),
            "density": self.density.state_dict(),
        }

    def load_numbers(self, numbers: Mapping[str, Any]) -> None:
        self.step = numbers["step"]
        self.recent_ce = numbers["recent_ce"]
        self.geco.load_state_dict(numbers["geco"])
        self.density.load_state_dict(numbers["density"])
        # a run whose epochs were lowered before it was resumed may be past its new warm-up
        self._end_warmup_if_due()
