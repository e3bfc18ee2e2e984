.DEFAULT_GOAL := help
.PHONY: help venv serve test unit lint format generate lock audit licences build conformance bench bench-quick bench-peers torture soak fuzz

PY := .venv/bin/python

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: ## Make .venv with everything that development needs
	@scripts/venv dev

serve: ## Start the service on your own home; ARGS goes to flue-grpc serve
	@scripts/venv runtime
	@.venv/bin/flue-grpc serve $(ARGS)

test: venv ## Run everything: static checks, generated code, all tests
	@scripts/test

unit: venv ## Run the unit tests alone
	@$(PY) -m pytest tests/unit

conformance: venv ## Run every client against a real server and print the table
	@$(PY) tests/conformance/driver $(ARGS)

KILLS ?= 2000
SEED ?= 1
torture: venv ## Kill servers, imports and indexes KILLS times from SEED, and look for what was lost
	@FLUE_KILLS=$(KILLS) FLUE_SEED=$(SEED) $(PY) -m pytest tests/torture

MINUTES ?= 10
soak: venv ## Load a server for MINUTES with clients in three languages; nothing may grow
	@$(PY) tests/soak --minutes $(MINUTES) $(ARGS)

SECONDS ?= 60
fuzz: venv ## Fuzz every target for SECONDS, guided by coverage where atheris can be had
	@scripts/fuzz $(SECONDS)

lint: venv ## Run the static checks alone
	@scripts/lint

format: venv ## Rewrite the sources in the project's format
	@scripts/format

generate: venv ## Make the stubs of every language from proto/
	@scripts/generate

lock: venv ## Resolve the dependencies into requirements-dev.lock
	@scripts/lock

audit: venv ## Look the locked dependencies up in the advisory database
	@scripts/audit

licences: venv ## List the licences of what users install in docs/licences.md
	@$(PY) scripts/licences

bench: venv ## Measure every target, or ONLY=P7,P8, against its floor
	@$(PY) benchmarks --only "$(ONLY)" $(ARGS)

bench-quick: venv ## Measure with small sizes, in under two minutes
	@$(PY) benchmarks --quick --only "$(ONLY)" $(ARGS)

bench-peers: venv ## Install the alternatives below .cache and measure them beside the product
	@scripts/bench-peers $(ARGS)

build: venv ## Make the wheel and the source distribution in dist/
	@$(PY) -m build
