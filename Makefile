# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/ready

.PHONY: demo test check bench clean

demo: $(READY)
	$(BIN)/python scripts/demo.py --out runs/demo

test: $(READY) check
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python scripts/bench/throughput.py runs/demo/recomb2.pt

# constraints.txt pins every version. Torch goes first and alone: asked for by version, it can come as a CPU build.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cpu,train,dev]'
	touch $@

clean:
	rm -rf $(VENV) runs build dist
