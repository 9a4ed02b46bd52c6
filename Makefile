# The two commands: `make run` and `make test`. Each sets up what is missing first.
PY = .venv/bin/python

.PHONY: help setup run demo test test-all lint bench bench-peers battery docs pictures clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

setup:  ## make .venv with everything needed to develop
	@scripts/setup

run: setup  ## the gateway on your home, at http://127.0.0.1:8710: the web console, an HTTP API and MCP; say more in ARGS="--port 0"
	@.venv/bin/holdfast serve $(ARGS)

demo: setup  ## the guided tour, on a temporary home
	@.venv/bin/holdfast demo

lint: setup  ## ruff, mypy --strict, import contracts, codespell
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-cache
	@.venv/bin/codespell

test: lint  ## lint, then the fast tests: at most 10 minutes on two cores, set-up included
	@$(PY) -m pytest -n auto --dist loadgroup

test-all: test battery  ## the fast tests, then the battery with all slow tests

bench: setup  ## speed, as ratios to floors measured in the same run
	@.venv/bin/holdfast bench speed

bench-peers:  ## other memories on the same data: make bench-peers DATA="cases.jsonl.gz ..." SCALE=100000
	@scripts/bench-peers $(or $(DATA),tests/data/slice.jsonl) $(if $(SCALE),--scale $(SCALE))

battery: setup  ## the slow tests: crashes, attacks, fuzzing, failover, all real clients, benchmarks; over an hour
	@$(PY) -m pip install --quiet --disable-pip-version-check --group battery || echo "battery: some parts will say NOT TRIED" >&2
	@$(PY) -m battery

docs: setup  ## recompute the computed pages of docs/ and build the site in build/site
	@$(PY) -m holdfast.cli.docs_pages docs
	@$(PY) tests/repository/test_promises.py --write
	@$(PY) tests/repository/test_layers.py --write
	@$(PY) scripts/draw-architecture
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo "Read it with: $(PY) -m http.server --bind 127.0.0.1 --directory build/site 8000"

pictures: setup  ## the pictures in docs/images: a recording of a terminal, and screenshots of the console
	@$(PY) scripts/draw-terminal
	@PICTURES_FOLDER=docs/images $(PY) -m pytest -q -n 0 tests/web/test_pictures.py

clean:  ## remove what setup and tests made
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist build
