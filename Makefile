# Each command sets up what it needs, into $(VENV); a second run finds it there.

VENV ?= .venv
BIN := $(VENV)/bin
# The first that runs and is new enough: a name on the path may be a shim with nothing behind.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; \
	done)

.DELETE_ON_ERROR:
.PHONY: help demo desk test test-langgraph test-crewai test-pydantic test-drivers prove prove-full check bench lint types layers wheel pythons browser screenshot clean

help:
	@echo 'make demo     one pause, many deliveries: LangGraph as it is, and gated'
	@echo 'make desk     an example service, to click at: two workers, a Postgres of its own'
	@echo 'make test     the whole suite; ARGS="-k name" for a part of it'
	@echo 'make test-langgraph  LangGraph on older releases, each in an environment of its own'
	@echo 'make test-crewai    CrewAI, oldest and newest, each in an environment of its own'
	@echo 'make test-pydantic  its tests on every pydantic-graph and pydantic-ai that is gated'
	@echo 'make test-drivers   how the contract drives AutoGen and LlamaIndex, which have no gate'
	@echo 'make prove    the models and the wider proofs; prove-full also the scaled models'
	@echo 'make check    lint, types, layers, the wheel, and the unit tests on every Python'
	@echo 'make bench    what a gate costs'
	@echo 'make clean    remove $(VENV) and what the tools left'

demo: $(VENV)/.demo
	@$(BIN)/remit-gates demo

desk: $(VENV)/.desk
	@$(BIN)/python -m examples.approval_desk $(ARGS)

test: $(VENV)/.dev browser
	@echo '· the whole suite'
	@$(BIN)/python -m pytest $(ARGS)

test-langgraph: $(VENV)/.dev
	@echo '· LangGraph, release by release'
	@PYTHONPATH=. $(BIN)/python tools/releases.py langgraph $(ARGS)

test-crewai: $(VENV)/.dev
	@echo '· CrewAI, release by release'
	@PYTHONPATH=. $(BIN)/python tools/releases.py crewai $(ARGS)

test-pydantic: $(VENV)/.dev
	@echo '· pydantic-graph and pydantic-ai, release by release'
	@PYTHONPATH=. $(BIN)/python tools/releases.py pydantic $(ARGS)

test-drivers: $(VENV)/.dev
	@echo '· drivers of the contract for frameworks without a gate'
	@PYTHONPATH=. $(BIN)/python tools/releases.py drivers $(ARGS)

prove: $(VENV)/.dev
	@echo '· the models'
	@$(BIN)/python formal/run.py $(ARGS)
	@echo '· the shipped code, under every policy'
	@$(BIN)/python -m pytest -q tests/proofs/wider.py tests/proofs/test_traces.py

prove-full: $(VENV)/.dev
	@$(MAKE) --no-print-directory prove ARGS=--full

check: lint types layers wheel pythons
	@echo '· all checks passed'

bench: $(VENV)/.dev
	@$(BIN)/python benchmarks/overhead.py $(ARGS)

lint: $(VENV)/.dev
	@echo '· lint and format'
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(VENV)/.dev
	@echo '· types: mypy, then pyright'
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

layers: $(VENV)/.dev
	@echo '· layers: who may import whom'
	@$(BIN)/lint-imports --no-logo

wheel: $(VENV)/.dev
	@echo '· the wheel, in an environment of its own'
	@$(BIN)/python tools/wheel.py

pythons: $(VENV)/.dev
	@echo '· unit tests on every Python'
	@$(BIN)/python tools/pythons.py $(VENV)/pythons

browser: $(VENV)/.dev
	@$(BIN)/python tools/browser.py

screenshot: $(VENV)/.dev browser
	@PYTHONPATH=. $(BIN)/python tools/screenshot.py

$(VENV)/.demo: pyproject.toml tools/envs.py
	@$(call setup,--extras langgraph sqlite)

$(VENV)/.desk: pyproject.toml tools/envs.py
	@$(call setup,--extras langgraph postgres http --groups desk)

$(VENV)/.dev: pyproject.toml tools/envs.py
	@$(call setup,--extras langgraph sqlite postgres redis http otel cli --groups dev)

# The stamp is touched last, so that a set-up that was cut short is done again.
define setup
test -n '$(PYTHON)' || { echo 'Python 3.10 or newer is needed, and none was found.' >&2; exit 1; }
$(PYTHON) tools/envs.py $(VENV) $(1)
touch $@
endef

clean:
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
