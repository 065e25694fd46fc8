# The everyday commands; `make` alone lists them. Everything runs in .venv, which is made from requirements.lock and
# made anew only when that file or pyproject.toml changes.

PYTHON ?= python3
CASES ?= 1000
SEED ?= 1
MINUTES ?= 10
PORT ?= 7070
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# Two at a time: each test process starts a control plane of its own, which needs about one core. Tests without one wait
# a third of their time.
WORKERS ?= 2
UNIT_WORKERS ?= 3

# Tests to run, for a part of a lane: make unit TESTS=tests/podium/kube
TESTS ?=
# The minor of the real components, 1.35 to 1.37; without it the one that tests run on.
KUBERNETES ?=
export KUBERNETES
# Hundreds of processes start: without compiled files each would compile all that it imports, for a second.
unexport PYTHONDONTWRITEBYTECODE

# In continuous integration: what becomes of tests that fail (see tools/kit/second_try.py).
SECOND_TRY ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PAGE := web/node_modules/.ready

ENGINE ?= podman
BASE ?= docker.io/library/python:3.13-slim

.PHONY: help dashboard demo docs image quick test integration lint format testbed unit doctest near real components \
	python313 parity cel fuzz lock clean release

help: ## Show this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

dashboard: ## Build the dashboard's page from web/ into src/podium_dashboard/static; needs Node 20.19 or newer
	cd web && npm ci --ignore-scripts --no-audit --no-fund && npx vite build

# The packages that the page is built and tested with, where Node is there.
$(PAGE): web/package-lock.json
	@if command -v npm > /dev/null; then \
		cd web && npm ci --ignore-scripts --no-audit --no-fund --silent && touch node_modules/.ready; fi

demo: $(READY) ## A cluster in one process: see pods placed, and why one is not
	@$(BIN)/python -m podium up --demo --port $(PORT)

docs: $(READY) ## Build the documentation site into build/site; a dead link is an error
	$(BIN)/sphinx-build -q -W --keep-going -n docs build/site

image: ## Build the container image: make image ENGINE=podman BASE=docker.io/library/python:3.13-slim
	$(ENGINE) build --file deploy/image/Containerfile --build-arg BASE=$(BASE) \
		--build-arg COMMIT=$$(git rev-parse HEAD) --tag podium:$(VERSION) .

quick: $(READY) ## Check style, types and the tests of what changed since origin/main: a minute at most
	@$(MAKE) --no-print-directory -j2 lint near

test: $(READY) ## Run everything that needs only Python: style, types, layers, tests, pages, the wheel
	@$(MAKE) --no-print-directory -j3 unit lint doctest

integration: $(READY) ## Run the tests on real Kubernetes components, which are built once, and on Python 3.13
	@$(MAKE) --no-print-directory -j2 testbed real

lint: $(READY) ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY) ## Format the code, and fix what can be fixed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# Without Go or a network the tests that need the test bed are skipped, unless PODIUM_REQUIRE_TESTBED=1.
testbed: $(READY)
	$(BIN)/python -m tools.testbed.build || [ "$$PODIUM_REQUIRE_TESTBED" != 1 ]

doctest: $(READY)
	$(BIN)/python -m pytest $(SECOND_TRY) -o cache_dir=.pytest_cache/doctest --doctest-modules src

unit: $(READY)
	$(BIN)/python -m pytest $(SECOND_TRY) -n $(UNIT_WORKERS) -m "not testbed and not long" $(TESTS)

near: $(READY)
	@$(BIN)/python -m tools.quick

# Python 3.13 needs no real component, so it has the time in which they are built.
real: $(READY)
	@$(MAKE) --no-print-directory python313
	@$(MAKE) --no-print-directory components

components: $(READY) $(PAGE)
	PODIUM_EXAMPLES=all $(BIN)/python -m pytest $(SECOND_TRY) -n $(WORKERS) -m "testbed or long" $(TESTS)

python313: $(READY)
	@WORKERS=$(WORKERS) SECOND_TRY='$(SECOND_TRY)' $(BIN)/python -m tools.python313 $(TESTS)

parity: $(READY) ## Compare with the real kube-scheduler: make parity CASES=1000 SEED=1 KUBERNETES=1.37
	$(BIN)/python -m tools.parity --cases $(CASES) --seed $(SEED)$(if $(KUBERNETES), --kubernetes $(KUBERNETES))

cel: $(READY) ## Compare CEL with the real API server: make cel CASES=5000 SEED=1
	$(BIN)/python -m tests.together.kubecel --count $(CASES) --seed $(SEED)$(if $(KUBERNETES), --kubernetes $(KUBERNETES))

# The limit is for all of the process; python -m tools.fuzz sets a lower one for itself.
fuzz: $(READY) ## Throw hostile input at every reader and endpoint: make fuzz MINUTES=10 SEED=1
	ulimit -v 5000000; $(BIN)/python -m tools.fuzz --minutes $(MINUTES) --seed $(SEED)

PINNED = $(BIN)/uv pip compile -q --no-header --no-annotate --no-emit-index-url \
	--no-emit-find-links --generate-hashes

lock: $(READY) ## Resolve the dependencies anew into requirements.lock, and those of the image from it
	$(PINNED) --extra dev --extra docs pyproject.toml -o requirements.lock
	$(PINNED) -c requirements.lock pyproject.toml -o deploy/image/requirements.lock
	echo setuptools | $(PINNED) -c requirements.lock - -o deploy/image/tools.lock
	echo uv | $(PINNED) - -o requirements-uv.lock

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

release: $(READY) ## Say the steps of a release: make release NEXT=0.3.0; DRY_RUN=no takes them, up to the upload
	@$(BIN)/python -m tools.release $(NEXT) $(if $(filter no,$(DRY_RUN)),--no-dry-run)

$(READY): requirements.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Podium needs Python 3.11 or newer; run make PYTHON=python3.x")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock requirements-uv.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . -e tools
	@touch $@
