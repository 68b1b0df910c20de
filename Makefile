# The two commands of the README are `make demo` and `make test`.
# Everything is installed into .venv; nothing else on the machine is touched.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.PHONY: demo test unit check lint types layers bench-smoke clean

# The compiled scanner is built where a C compiler is.
SCANNER := $(addprefix src/heldout/trec/scanning/,_scan.c _scan_core.h)

.venv/ready: pyproject.toml $(SCANNER)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

# Plays a whole shared task in ./demo and prints the standings and where the page is.
demo: .venv/ready
	rm -rf demo
	$(BIN)/heldout demo demo

test: .venv/ready
	$(BIN)/python -m pytest -q -n $(WORKERS)

# The quick ones: no real data, no browser, nothing that takes more than a few seconds.
unit: .venv/ready
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not real and not browser"

check: lint types layers test bench-smoke

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

layers: .venv/ready
	$(BIN)/lint-imports

# Not a measurement: shows that the benchmark runs.
bench-smoke: .venv/ready
	$(BIN)/python benchmarks/run.py --quick

clean:
	rm -rf .venv demo build dist src/*.egg-info
