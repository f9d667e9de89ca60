# Each target makes or reuses the virtual environment in .venv and installs what it needs.
PYTHON ?= python3
TORCH ?= torch==2.13.0 # the version that tests are run with; its build for processors is enough, and much smaller than that for GPUs
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test campaign lint bench bench-smoke docs clean

demo: $(VENV)/installed
	$(BIN)/tiebreak demo
	$(BIN)/tiebreak reproduce regression --quick

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile # tests of one file share compiled code

MINUTES ?= 20 # about how long the campaign takes

campaign: $(VENV)/installed-test
	$(BIN)/python -m campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) # other trials in each run, unless a seed is given

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The longest ones first, so that two processes end at about the same time.
BENCHMARKS := iteration methods exact near_ties passes race rows cut adapters reproduce domains presets diabetes fairness overhead

bench: $(VENV)/installed-test
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

bench-smoke: $(VENV)/installed-test
	printf '%s\n' $(BENCHMARKS:%=benchmarks/%.py) 'benchmarks/iteration.py --before .' | \
		TQDM_DISABLE=1 xargs -P 2 -I{} sh -c '$(BIN)/python {} --tiny'

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env docs docs/_build

clean:
	rm -rf $(VENV)

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/installed-docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@
