# The developer's words. `make test` and `make check` are what CI runs.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
JOBS ?= 2

.PHONY: setup test check package docker projects docs demo bench clean-demo

setup: .venv/installed

# Made again only when what must be installed has changed.
.venv/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer was found" >&2; exit 3; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "next: install Python's venv module (Debian: apt install python3-venv)" >&2; exit 3; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip==26.3
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@touch $@

# ONLY narrows what is run, for a second look at what failed.
APART := packaging or projects or docker or deep or harbor or model

test: setup
	$(BIN)/python -m pytest -n $(JOBS) --timeout 300 -m "not ($(APART))" $(ONLY)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Builds the wheel, installs it elsewhere and runs it there.
package: setup
	$(BIN)/python -m pytest -m packaging --timeout 600 $(ONLY)

# Needs an engine, and its image rsi-base:bookworm: `.ci/with-docker make docker` brings both.
docker: setup
	$(BIN)/python -m pytest -m "docker and not deep" --timeout 600 $(ONLY)

# Authors, checks and runs tasks from real public projects; RSI_TEST_PROJECTS names the folder that holds or gets them.
projects: setup
	$(BIN)/python -m pytest -m projects --timeout 3600

docs: setup
	$(BIN)/python docs/generate.py

# The three-minute path of the README, in a folder of its own.
DEMO := RSI_HOME=$(CURDIR)/demo/home $(BIN)/rsi

demo: setup clean-demo
	$(DEMO) new templates/sample/project --answers templates/sample/answers.toml --out demo/task
	$(DEMO) check demo/task
	$(DEMO) run demo/task --agent search --submissions 8 --seed 1 --name demo
	$(DEMO) show demo
	@echo "report: demo/home/runs/demo/report.html"

# Boxes first: what is still mounted below demo/ must not be deleted through.
clean-demo: setup
	@if [ -d demo ]; then $(DEMO) --quiet clean && rm -rf demo; fi

bench: setup
	@$(BIN)/python tests/bench/bench.py
