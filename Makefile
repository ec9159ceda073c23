# Everything here sets itself up on a machine with nothing but Python 3.11+, pip and make, and lives in .venv.
# Without make (Windows): see CONTRIBUTING.md, "Without make".

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests keep all cores busy. worksteal: files stay together on one core, so that a game is rarely compiled twice, until one core
# runs out of work.
JOBS ?= auto
# Kernels, too, lie in __pycache__: what one process has read and compiled, the next ones need not.
unexport PYTHONDONTWRITEBYTECODE
LOWEST := build/lowest
RAY := build/ray
# What each compiles beforehand, so that no two processes compile the same kernel: ids and games of tests.
TEST_IDS := $(addprefix palaestra/,CartPole-v0 TeamMatrix-v0 GridSoccer-v0 TeamPong-v0 TeamTag-v0 UcavTrack-v3 MaHalfCheetah-v0)
TEST_GAMES := palaestra.replay testing.broken_games:duel testing.broken_games:tug \
	$(addprefix games.,two_team:game two_team_homogeneous:game size_game:game duel:game orchard:game) \
	$(addprefix games.,body_game:game body_game:compiled_game)
CHECK_GAMES := palaestra.exact $(TEST_GAMES) testing.broken_crowd:crowd $(addprefix games.,pitch:game macros:game) \
	$(addprefix games.variants:,pursuit_by_node solved_pursuit_by_node pursuit_by_hops confront_by_node confront_by_hops) \
	$(addprefix games.variants:,battle_seen_as_in_smac)
WARM := PYTHONPATH=tests $(BIN)/palaestra doctor --warm --jobs $(if $(filter auto,$(JOBS)),2,$(JOBS))
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# Tests that neither runs.
ELSEWHERE := browser or learning or peers or ray or slow
# Files with such tests: to import all others takes seconds.
JITLESS = $$(grep -rl --include="test_*.py" jitless tests)

.DEFAULT_GOAL := help
.PHONY: help setup demo test mutate nightly check lint test-browser test-lowest test-ray test-peers learn bench compare pages docs release clean distclean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  PYTHON=python3.12 chooses the interpreter of a new .venv, JOBS=4 the processes of test."

setup: $(READY) ## Create .venv with everything in it (all other targets do so themselves)

demo: $(READY) ## A trained pilot fights scripted ones in JSBSim; writes ./palaestra-demo
	$(BIN)/palaestra demo

# Rules as plain Python where that says the same; then a few kernels, and everything that needs no other one.
test: $(READY) ## The quick tests: what to run after a change, and on a new machine
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "jitless and not (check or $(ELSEWHERE))" $(JITLESS)
	$(WARM) $(TEST_IDS) $(TEST_GAMES:%=--game %) >/dev/null
	$(PYTEST) -m "not (jitless or check or $(ELSEWHERE))"

check: $(READY) ## The other tests that a change must pass: all kernels, the conformance kit, the house, the documentation
	$(WARM) $(CHECK_GAMES:%=--game %) >/dev/null
	$(PYTEST) -m "check and not ($(ELSEWHERE))"

mutate: $(READY) ## Whether the tests catch broken lines (long)
	$(BIN)/python tests/mutations/run.py --jobs 2

# All is compiled first: a test whose game is being compiled would count as one that hangs.
nightly: $(READY) ## Everything else, once a commit (ONLY=reliability MINUTES=60; can be resumed)
	$(BIN)/palaestra doctor --warm --jobs 2 >/dev/null
	$(BIN)/python tests/nightly.py --jobs $(if $(filter auto,$(JOBS)),2,$(JOBS)) $(if $(ONLY),--only $(ONLY)) $(MINUTES:%=--minutes %)

lint: $(READY) ## Style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

test-browser: $(READY) ## The page of a match in a headless Chromium (skipped where there is none)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group browser
	$(BIN)/python -m pytest -m browser tests

test-lowest: $(LOWEST)/.ready ## The fast tests with the oldest supported dependencies
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist worksteal --ignore=tests/baselines

test-ray: $(RAY)/.ready ## Evaluations, training and sampling on a Ray cluster of this machine
	$(RAY)/bin/python -m pytest -n 2 --dist loadfile -m "$(or $(MARK),ray and not slow)" tests/scale

test-peers: $(READY) ## Plug palaestra into other libraries, each in its own venv (long, can be resumed)
	$(BIN)/python tests/peers/run.py

learn: $(READY) ## The learning figures: hours, can be interrupted and resumed
	$(BIN)/python benchmarks/learn.py

bench: $(READY) ## The speed measurements with their thresholds
	$(BIN)/python benchmarks/speed.py

compare: $(READY) ## The speed of this checkout next to another one: make compare AGAINST=../before
	$(BIN)/python benchmarks/compare.py --against $(or $(AGAINST),$(error say which checkout: make compare AGAINST=../before))

pages: $(READY) ## Draw missing pictures, write the pages of the environments and the tables in README.md anew
	$(BIN)/python docs/tools/gallery.py
	$(BIN)/python docs/tools/write_pages.py --write

docs: pages ## The same, then build the site in build/docs (works offline)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html -c docs . build/docs
	@echo "open build/docs/index.html"

release: $(READY) ## Build wheel and sdist, try them on each Python here and write the notes; uploads nothing
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group release
	$(BIN)/python .ci/release.py

clean: ## Remove caches and build products
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove .venv too
	rm -rf $(VENV)

# $(call new_venv,FOLDER): a venv with a pip that knows dependency groups. An unfinished one is started anew.
define new_venv
@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || { \
	echo "palaestra needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | head -n 1)"; \
	echo "Name another one, for example: make $(or $(MAKECMDGOALS),test) PYTHON=python3.12"; \
	exit 1; }
@test -x $(1)/bin/pip || { echo "Creating $(1) (once; downloads up to 1 GB)"; $(PYTHON) -m venv --clear $(1); }
$(1)/bin/python -m pip install --quiet --constraint constraints.txt --upgrade pip
endef

$(READY): pyproject.toml constraints.txt
	$(call new_venv,$(VENV))
	$(BIN)/python -m pip install --constraint constraints.txt --group dev --group docs --group figures --editable ".[all]"
	@touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	$(call new_venv,$(LOWEST))
	$(LOWEST)/bin/python -m pip install --requirement constraints-lowest.txt --group dev --editable .
	@touch $@

# --no-compile: Python compiles the few modules that are imported.
$(RAY)/.ready: pyproject.toml constraints.txt
	$(call new_venv,$(RAY))
	$(RAY)/bin/python -m pip install --quiet --no-compile --constraint constraints.txt --group test --editable ".[ray,flight,baselines]"
	@touch $@
