"""The command line for tests: in this process, or as a user's own."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

from lexical_sae import cli


def run(*arguments: object, code: int = 0) -> tuple[str, str]:
    """What it prints and what it says on stderr, in this process: starting one takes seconds."""
    shown, errors, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["lexical-sae", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors):
            try:
                cli.main()
                found: object = 0
            except SystemExit as ended:
                found = ended.code or 0
    finally:
        sys.argv = before
    assert found == code, shown.getvalue() + errors.getvalue()
    return shown.getvalue(), errors.getvalue()


def run_process(*arguments: object, code: int = 0) -> tuple[str, str]:
    """The same in a process of its own, for what only that shows: start-up, signals, exit codes."""
    line = [sys.executable, "-m", "lexical_sae", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr
