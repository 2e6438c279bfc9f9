# Two commands: `make leaderboard` and `make test`. Both set up .venv when it is not there yet.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: leaderboard test verify-board check browser faults benchmark flights constraints clean

leaderboard: $(INSTALLED)
	$(BIN)/cbo run --suite quick --out runs/quick
	$(BIN)/cbo leaderboard build --runs runs/quick --out runs/quick

# One thread per process: two processes share the cores, and more threads would fight for them.
# Each process gets whole files, whose tests share what they set up, and helps the other at the end.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/benchmarks
test: check browser
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-fail-under=90

# An answer in two minutes: all but what takes long, injected faults and the browser.
test-fast: check
	$(PYTEST) --ignore=tests/faults --ignore=tests/site -m "not slow"

# Replays every published row in full: with the lunar lander hours, so `make test` has a short form.
verify-board: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/cbo verify leaderboard/runs

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/lint_imports.py
	$(BIN)/mypy

# Chromium for the tests of the site, where it may be installed; elsewhere those tests are skipped.
browser:
	sh tests/site/install_chromium.sh

# Kills, hangs, full disks and the like, injected into real campaigns; `make test` has a short form.
faults: $(INSTALLED)
	CBO_FAULTS=full OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/faults tests/journal/test_damage.py

benchmark: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/benchmarks

# The library that flies the lunar lander in campaigns, compared with the simulator, bit by bit.
flights: $(INSTALLED)
	$(BIN)/python -m tests.flights.build build/flights
	$(BIN)/python -m tests.flights.check build/flights
	$(BIN)/python -m pytest tests/flights

# Re-installs only when the project's own lists change. One step of pip for everything, so that the
# pins of constraints.txt hold for what the build needs too.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[all,dev]"
	touch $(INSTALLED)

# Writes constraints.txt anew from the newest releases that the extras allow.
constraints:
	$(PYTHON) tests/write_constraints.py

clean:
	rm -rf .venv build dist *.egg-info
