# Everything runs in a virtual environment of its own; `make test` sets it up if need be.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# in the order of `lexical-sae run --list`
STUDIES := experiment ablation multi-dataset sparsity-frontier sota-comparison faithfulness ner \
	bcos-ablation surgery-planted long-context senses

.PHONY: test test-slow bench demo studies format clean

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

# the quick form of every study; one that fails does not keep the others from running
studies: $(VENV)/.studies-installed
	@failed=""; for name in $(STUDIES); do \
		$(BIN)/lexical-sae run experiments/$$name.yaml --quick || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

format: $(VENV)/.test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.demo-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e ".[training,certify,surgery]"
	touch $@

$(VENV)/.studies-installed: $(VENV)/.demo-installed
	$(PIP) -e ".[training,certify,surgery,explainers]"
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
