# Everything runs in a virtual environment of its own; `make test` sets it up if need be.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: test test-slow bench demo format clean

demo: $(VENV)/.demo-installed
	$(BIN)/lexical-sae demo

test: $(VENV)/.test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(JOBS)

test-slow: $(VENV)/.test-installed
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.bench-installed
	$(BIN)/python -m benchmarks.lexical_head --json
	$(BIN)/python -m benchmarks.train_step --json
	$(BIN)/python -m benchmarks.explain --json

format: $(VENV)/.test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.demo-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e ".[training,certify,surgery]"
	touch $@

# torch first and pinned: a range would take the newest build with its CUDA packages.
$(VENV)/.test-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e ".[test]"
	touch $@

$(VENV)/.bench-installed: $(VENV)/.test-installed
	$(PIP) -e ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
