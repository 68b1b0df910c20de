# The two commands of the README are `make demo` and `make test`.
# Everything is installed into .venv; nothing else on the machine is touched.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

# What tests start finds heldout compiled, and their next run finds them compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all unit lowest alone check wheel lint types layers house bench-smoke docs notebooks clean

# The compiled scanner is built where a C compiler is.
SCANNER := $(addprefix src/heldout/trec/scanning/,_scan.c _scan_core.h)

UNIT := .venv/ready-unit
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What the demo needs and no more.
.venv/ready-demo: pyproject.toml $(SCANNER)
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[rankers,web]'
	touch $@

# What `make unit` needs and no more.
.venv/ready-unit: pyproject.toml $(SCANNER)
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[test-core]'
	touch $@

# What the tests need; the demo's and the unit tests' are part of it.
.venv/ready: pyproject.toml $(SCANNER)
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[test]'
	touch .venv/ready-demo .venv/ready-unit $@

# Plays a whole shared task in ./demo and prints the standings and where the page is.
demo: .venv/ready-demo
	rm -rf demo
	$(BIN)/heldout demo demo

# As many tests in a row for each worker, which keeps what a module prepares in one of them; a worker
# that is done takes over the last tests of another.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# What a push needs. Without torch, containers, and what only the night has time for: `make test-all`
# has these.
test: .venv/ready
	$(PYTEST) -m "not night and not neural and not containers and not (slow and (real or browser))"

# Everything, with 200 examples of each property for 25, and every point at which a command can be
# killed; and what `alone` is a part of.
test-all: .venv/ready
	HELDOUT_NIGHT=1 $(PYTEST)
	$(WITHOUT) $(PYTEST) -m "not slow and not real and not browser" tests/board tests/analyses

# The quick ones: no real data, no browser, no database, nothing that takes more than a few seconds.
# Whoever has only `.[test-core]` skips the modules that need more.
unit: $(UNIT)
	$(PYTEST) -m "not night and not neural and not slow and not real and not browser"

# The same on the lowest versions of all dependencies that pyproject.toml allows.
EXTRAS := cluster,data,fast,frames,measures,png,rankers,timestamps,web
UV := .venv-lowest/bin/uv pip
lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) install --quiet --python .venv-lowest --resolution lowest-direct -e '.[$(EXTRAS)]'
	$(UV) freeze --quiet --python .venv-lowest --exclude-editable >.venv-lowest/versions
	$(UV) install --quiet --python .venv-lowest -c .venv-lowest/versions -e '.[test]'
	$(MAKE) unit BIN=.venv-lowest/bin UNIT=

# A whole board and every analysis, as if judging, survivorship and rankers were not there.
WITHOUT := HELDOUT_TEST_WITHOUT="judging survivorship rankers"
alone: .venv/ready
	$(WITHOUT) $(PYTEST) -m "not browser" tests/scenario/test_story.py tests/analyses/test_contract.py

# What needs one processor each runs side by side; the tests use all of them.
check: .venv/ready
	$(MAKE) -j2 types lint layers house docs
	$(MAKE) test

# The packages, in dist, and whether they work without the sources.
wheel: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/check_wheel.py dist

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

layers: .venv/ready
	$(BIN)/lint-imports

# How large everything is, against ceilings that only go down.
house: .venv/ready
	$(BIN)/python tools/house.py --check

# The first is no measurement: it shows that the benchmark runs. The second fails where a command on a
# board of 300 entries takes more seconds of processor than its budget.
bench-smoke: .venv/ready
	$(BIN)/python benchmarks/run.py --quick
	$(BIN)/python benchmarks/growth.py 300 --check

# The documentation site, in build/docs.
docs: .venv/ready
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/docs

# The notebooks as pages, in build/notebooks.
notebooks: .venv/ready
	$(BIN)/python -m nbconvert --execute --to html --output-dir build/notebooks docs/notebooks/*.ipynb

clean:
	rm -rf .venv .venv-lowest demo build dist src/*.egg-info
