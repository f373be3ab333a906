"""The memory estimate against what the kernel then measures, each in a process of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

from tests.tiny import tiny_model

MEASURE = """
import json, sys, torch
from transformers import BertConfig, BertForMaskedLM
from benchmarks.peak import peak_extra_bytes
from lexical_sae.model.lexical_sae import LexicalSAE
from tests.tiny import tiny_tokenizer

torch.set_num_threads(2)
task, batch, length, training = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
tokenizer = tiny_tokenizer("wordpiece")
config = BertConfig(vocab_size=20000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                    intermediate_size=1024)
torch.manual_seed(0)
model = LexicalSAE.from_backbone(BertForMaskedLM(config), ["a", "b", "c"], task,
                                 tokenizer=tokenizer, dictionary="all")
model.train(training)
# real sizes with a tiny tokenizer: the decoder's rows are widened to the whole vocabulary
words = 16000
for name in ("weight", "bias", "threshold"):
    old = getattr(model.lexical, name)
    setattr(model.lexical, name, torch.nn.Parameter(torch.randn(words, *old.shape[1:]) * 0.3))
model.lexical.keep = torch.ones(words, dtype=torch.bool)
model.head.W1 = torch.nn.Parameter(torch.randn(words, model.head.W1.shape[1]) * 0.02)
ids = torch.randint(5, 20000, (batch, length))
with torch.no_grad():
    h = model.hidden_states(ids[:2], torch.ones_like(ids[:2])).flatten(0, 1)
    z = h @ model.lexical.weight.T
    if task == "classification":
        z, wanted = z.view(2, length, -1).amax(1), 200 * 2
    else:
        wanted = 64 * z.shape[0]
    model.lexical.threshold.fill_(float(z.flatten().topk(wanted).values[-1]))
    model.lexical.bias.zero_()
    del h, z
estimate = model.memory_estimate(batch, length, training=training)
optimizer = torch.optim.AdamW(model.parameters()) if training else None

def step():
    run = model.tag if task == "tagging" else model.classify
    with torch.set_grad_enabled(training):
        logits = run(ids).logits
        if training:
            logits.square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

def two_steps():
    step()
    step()

measured = peak_extra_bytes(two_steps) + estimate.weights
print(json.dumps({"estimated": estimate.total, "measured": measured}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("task", "batch", "length", "training"),
    [
        ("classification", 16, 128, True),
        ("classification", 32, 64, True),
        ("tagging", 16, 128, True),
        ("classification", 64, 128, False),
    ],
)
def test_estimate_is_within_a_quarter(task: str, batch: int, length: int, training: bool) -> None:
    """The median of three processes: the heap's own share moves by a tenth from run to run."""
    arguments = [task, str(batch), str(length), str(int(training))]
    ratios = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout.splitlines()[-1])
        ratios.append(result["estimated"] / result["measured"])
    assert abs(statistics.median(ratios) - 1) <= 0.25, ratios


def test_parts_add_up_and_grow_with_the_batch() -> None:
    model = tiny_model("bert")
    small, large = model.memory_estimate(2, 16), model.memory_estimate(8, 16)
    for estimate in (small, large):
        parts = estimate.to_dict()
        assert parts.pop("total") == sum(parts.values())
    assert large.activations > 2 * small.activations
    assert model.memory_estimate(2, 16, training=False).gradients == 0
    with pytest.raises(ValueError, match="batch is 0; expected at least 1"):
        model.memory_estimate(0, 16)


def test_estimating_changes_nothing() -> None:
    import torch

    model = tiny_model("bert")
    state = torch.random.get_rng_state()
    before = {name: p.clone() for name, p in model.named_parameters()}
    model.memory_estimate(2, 16)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    assert torch.equal(state, torch.random.get_rng_state())
