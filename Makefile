# Every target makes .venv when it is missing; `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test check bench calibrate clean

$(VENV)/demo.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/demo.stamp

demo: $(VENV)/demo.stamp  ## policies side by side on one workload, with a report to open
	$(BIN)/steadyflow demo

test: $(VENV)/dev.stamp  ## all tests, ground truth included
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

check: $(VENV)/dev.stamp  ## format, lint and types; before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/dev.stamp  ## performance in units of one plain heap event
	$(BIN)/python -m pytest tests/benchmarks --benchmark-enable --benchmark-only -q

calibrate: $(VENV)/dev.stamp  ## the verdict's thresholds against a thousand null series; takes long
	$(BIN)/python -m scenarios.calibrate

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .hypothesis
