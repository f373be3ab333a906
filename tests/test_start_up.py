"""Start-up: imports cost nothing until they are needed."""

from __future__ import annotations

import subprocess
import sys
import time


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = ["torch", "transformers", "datasets", "pyarrow", "sklearn", "typer", "rich"]
    code = f"import lexical_sae, sys; print([m for m in {heavy} if m in sys.modules])"
    assert _run(code) == "[]"


def test_import_beyond_torch_is_fast() -> None:
    code = (
        "import time, torch; t = time.perf_counter(); import lexical_sae;"
        " print(time.perf_counter() - t)"
    )
    assert min(float(_run(code)) for _ in range(3)) < 0.5


def test_help_needs_no_torch_and_is_fast() -> None:
    code = (
        "import sys; sys.argv = ['lexical-sae', '--help']\n"
        "from lexical_sae.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        text = _run(code)
        seconds.append(time.perf_counter() - start)
        assert text.splitlines()[-1] == "False"
        assert "lexical-sae" in text
    assert min(seconds) < 2
