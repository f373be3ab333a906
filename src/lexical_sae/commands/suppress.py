"""``lexical-sae suppress`` and ``restore``: words out of a saved model, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import plain, refuse_taken

Output = Annotated[Path, typer.Option(help="New folder for the changed model.")]
Run = Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")]


def suppress(
    run: Run,
    output: Output,
    words: Annotated[
        list[str] | None, typer.Argument(help="Words to cut out, with their other forms.")
    ] = None,
    list_: Annotated[
        list[str] | None,
        typer.Option("--list", help="List of words: identity, identity:GROUP or a YAML file."),
    ] = None,
    regex: Annotated[
        list[str] | None, typer.Option(help="Cut all words in which this pattern is found.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Only the words as given, in any case.")
    ] = False,
    how: Annotated[
        str,
        typer.Option(
            help="cut: their coordinates never open. unread: the words are taken out of every text "
            "before it is read. Or both."
        ),
    ] = "cut",
) -> None:
    """Take words out of a model, so that no decision rests on them. The original stays."""
    from lexical_sae.runs import model_folder_of
    from lexical_sae.surgery.saved import suppress_saved
    from lexical_sae.surgery.word_lists import load_word_list

    refuse_taken(output)
    wanted = list(words or [])
    for name in list_ or []:
        wanted += [word for group in load_word_list(name).values() for word in group]
    dictionary, found = suppress_saved(
        run, model_folder_of(run), output, wanted, patterns=regex or (), exact=exact, how=how
    )
    for line in found.notes(dictionary):
        plain(line)
    if found.unread:
        plain(f"left unread: {', '.join(found.unread)}")
    done = _counted(len(found.unread), "left unread")
    if how != "unread":
        cut = f"{len(found.coordinates):,} of {len(dictionary):,} words cut out"
        done = cut if how == "cut" else f"{cut}, {done}"
    plain(f"{done}; saved to {output}")


def restore(run: Run, output: Output) -> None:
    """Put all words back that were taken out of a model."""
    from lexical_sae.runs import model_folder_of
    from lexical_sae.surgery.saved import restore_saved

    refuse_taken(output)
    back, read = restore_saved(run, model_folder_of(run), output)
    done = [_counted(back, "back")] if back else []
    done += [_counted(read, "read again")] if read else []
    plain(f"{' and '.join(done)}; saved to {output}")


def _counted(words: int, what: str) -> str:
    return f"1 word is {what}" if words == 1 else f"{words:,} words are {what}"
