# Two commands to know: `make demo` and `make test`. Each creates .venv and installs what it needs.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

COQ_PACKAGES := coq libcoq-interval libcoq-flocq libcoq-coquelicot libcoq-mathcomp-ssreflect

.PHONY: formal formal-slow demo test test-long test-slow warm check docs bench zoo transformer-lens install clean

demo: .venv/.core          ## a tour on bundled models, without torch
	$(BIN)/compactproofs demo

test: warm                 ## every property and every verb, in a few minutes
	$(PYTEST) -m "not slow and not long"

test-long: warm            ## whole runs, retraining, fuzzing, documentation: what CI runs besides
	$(PYTEST) -m "long and not slow"

test-slow: .venv/.dev      ## long-running statistical and training tests
	$(PYTEST) -m slow

warm: .venv/.dev           ## compile once what the workers of a test run would each compile
	$(BIN)/compactproofs prove max-of-4 > /dev/null
	$(BIN)/compactproofs prove max-of-4-heads --n-ctx 2 --seconds 1 > /dev/null

check: .venv/.dev docs     ## lint, format, types, import contracts, strict documentation build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

formal:                    ## compile the theory in formal/; needs Coq
	@command -v coqc > /dev/null || { echo "coqc was not found; on Debian: apt-get install $(COQ_PACKAGES)" >&2; exit 1; }
	$(MAKE) -C formal

formal-slow: formal .venv/.dev ## larger certificates through the kernel; have coqchk look at the compiled theory again
	$(BIN)/python benchmarks/compare_formal.py
	$(MAKE) -C formal coqchk

docs: .venv/.dev           ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

bench: .venv/.dev          ## all benchmarks, as ratios
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

zoo: .venv/.dev            ## retrain the bundled models
	$(BIN)/python benchmarks/train_zoo.py

transformer-lens: .tl/.done ## TransformerLens 2, 3 and 4, each as it is, for tests/transformer_lens

install: .venv/.core       ## every extra
	$(PIP) -e '.[train,report,sweep,dev]' -e ./experiments

clean:
	rm -rf .venv .tl site demo

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.core: .venv/bin/python pyproject.toml experiments/pyproject.toml constraints.txt
	$(PIP) -e '.[report]'
	touch $@

.venv/.dev: .venv/.core
	$(PIP) -e '.[train,report,sweep,dev]' -e ./experiments
	touch $@

.tl/.done: tests/transformer_lens/requirements-2.txt tests/transformer_lens/requirements-4.txt
	rm -rf .tl
	for major in 2 4; do \
		$(PYTHON) -m venv .tl/$$major && \
		.tl/$$major/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/transformer_lens/requirements-$$major.txt || exit 1; \
	done
	.tl/4/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target .tl/3 transformer-lens==3.9.0 better-abc==0.0.3
	touch $@
