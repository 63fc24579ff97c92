# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/ready
EXTRAS = cpu,train,pretrained,lm,plot,ray,docs,dev
# Python keeps what it has compiled, whatever the caller wants: without that each process that imports torch compiles it anew,
# which takes 8 s in place of 2.5.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test pytest test-long check campaign fuzz docs bench lm runner training runner-wheel runner-arm64 oldest test-oldest lock sbom audit \
    cpp cpp-sanitize clean

demo: $(READY) training
	$(BIN)/python scripts/demo.py --out runs/demo

# Two things at a time: compilers and downloads wait for each other, and tests for processes that they started.
test: $(READY)
	$(MAKE) -j 2 lm runner oldest
	$(MAKE) -j 2 check pytest

pytest: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Further cases of what shorter tests show; most read published data.
test-long: $(READY) lm runner
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

# KenLM's programs; where they cannot be built, this says what is missing, and the tests that need them are skipped.
lm: $(READY)
	-$(BIN)/python -m compgen lm install

# The C++ runner and its unit tests, where a compiler is; else this says in a line what is missing.
runner: $(READY)
	cpp_runner/build.sh build/cpp $(BIN)/python

# What training gains from a compiler alone, in a minute: the loops of compgen/models/compiled.py. `runner` has them, too.
training: $(READY)
	cpp_runner/build.sh build/cpp $(BIN)/python compgen-training

# The runner as a wheel in build/wheel, tried in an environment that has nothing else.
runner-wheel: $(READY)
	cpp_runner/wheel.sh build/wheel $(BIN)/python

# The runner for 64-bit ARM in build/arm64, built and tried on another machine, by emulation (seven minutes).
runner-arm64: $(READY)
	cpp_runner/arm64.sh build/arm64 $(BIN)/python

# An environment of the oldest versions that pyproject.toml allows, for the tests of what bundles must not reach: it has what
# samples from bundles. `make test-oldest` adds the rest to it (the index's torch: 7 GB) and runs all tests there.
OLDEST = $(BIN)/uv pip install --quiet --python build/oldest/bin/python --resolution lowest-direct
oldest: $(READY)
	@test build/oldest/ready -nt pyproject.toml || { rm -rf build/oldest && $(BIN)/uv venv --quiet --python $(BIN)/python build/oldest && \
	    $(OLDEST) -e '.[cpu]' && touch build/oldest/ready; } || \
	    echo "the oldest versions cannot be had: the tests with them are skipped"

test-oldest: oldest
	$(OLDEST) -e '.[$(EXTRAS)]'
	build/oldest/bin/python -m pytest -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/complexity.py

# Every call of every command fails once, and is once where it is killed (hours); readers get damaged inputs, for
# FUZZ_SECONDS each (C++), or FUZZ_INPUTS of them (Python); RANDOM_MODELS of each kind go through all runtimes; and runs are
# long and crowded. A short version is in the tests.
FUZZ_SECONDS ?= 600
FUZZ_INPUTS ?= 50000
RANDOM_MODELS ?= 1250
campaign: $(READY) lm runner
	$(MAKE) test-long fuzz
	$(BIN)/python scripts/random_models.py --count $(RANDOM_MODELS)
	$(BIN)/python scripts/load.py --of samples,crowd,cluster
	$(BIN)/python scripts/faults.py --all --over --out build/faults.jsonl

# The damaged inputs alone; what is C++ needs clang, and is left out where there is none.
fuzz: $(READY)
	mkdir -p build
	$(BIN)/python scripts/fuzz_readers.py --inputs $(FUZZ_INPUTS) --keep build/faults --out build/fuzzed.jsonl
	@command -v clang++ >/dev/null || { echo "no clang++ here: the readers of the C++ programs are left out"; exit 0; }; \
	    $(BIN)/python scripts/fuzz.py --build --seconds $(FUZZ_SECONDS) --out build/fuzzed.jsonl

# The documentation as a site in build/site; broken links and anchors are errors.
docs: $(READY)
	$(BIN)/python scripts/reference.py
	$(BIN)/mkdocs build --strict

bench: $(READY) runs/demo/recomb2.pt
	$(BIN)/python scripts/bench/throughput.py runs/demo/recomb2.pt

runs/demo/recomb2.pt:
	$(MAKE) demo

# constraints.txt pins every version, by the SHA-256 of each of its files. pip checks them from 26.1 on, and so goes first. Two
# things are not checked: this project, and a build of torch in a folder that pip looks into (find-links). That is how a CPU
# build can be had, which is not the index's file; where there is none, torch is the index's, and checked.
# Modules are compiled when they are first imported: to compile all of them here would take longer than all the rest.
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt >$(VENV)/pip.txt
	$(PIP) --require-hashes -r $(VENV)/pip.txt
	$(PIP) --no-index --no-deps torch==2.13.0 2>$(VENV)/torch.log || true
	$(PIP) -c constraints.txt hatchling editables
	$(PIP) --no-deps --no-build-isolation -e .
	$(PIP) -c constraints.txt 'compgen[$(EXTRAS)]'
	touch $@

# constraints.txt anew, for all platforms, from the index that uv uses; what is pinned stays. `make lock LOCK=--upgrade` takes the
# newest versions, `LOCK="--upgrade-package numpy"` those of one package.
lock: $(READY)
	echo '.[$(EXTRAS),release]' | $(BIN)/uv pip compile - --quiet --universal --generate-hashes --no-annotate --no-emit-package compgen \
	    --custom-compile-command 'make lock' -o constraints.txt $(LOCK)

# What a release is made of, as CycloneDX JSON.
sbom: $(READY)
	$(PIP) -c constraints.txt 'compgen[release]'
	$(BIN)/python scripts/sbom.py build/compgen.cdx.json

# The pinned versions, looked up among known vulnerabilities: fails if there are any, and if they cannot be looked up.
audit: $(READY)
	$(BIN)/python scripts/audit.py

# The C++ runner. ONNX Runtime comes with the environment; with torch there, so does the TorchScript runner.
cpp: $(READY)
	cpp_runner/fetch_headers.sh
	cmake -S cpp_runner -B build/cpp -DCMAKE_DISABLE_FIND_PACKAGE_Torch=OFF -DCMAKE_PREFIX_PATH="$$($(BIN)/python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
	cmake --build build/cpp -j 2
	cpp_runner/build.sh build/cpp $(BIN)/python
	$(BIN)/python -m pytest tests/sampling/test_native*.py tests/runtime/test_acceptance.py

cpp-sanitize: $(READY)
	cpp_runner/fetch_headers.sh
	export TSAN_OPTIONS="suppressions=$(CURDIR)/cpp_runner/tests/thread.supp print_suppressions=0"; \
	for kind in address,undefined thread; do \
	    cmake -S cpp_runner -B build/cpp-$$kind -DSANITIZE=$$kind -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON && \
	    cmake --build build/cpp-$$kind -j 2 && \
	    ctest --test-dir build/cpp-$$kind --output-on-failure && \
	    $(BIN)/python scripts/mutate.py --runner build/cpp-$$kind/compgen-sample && \
	    $(BIN)/python scripts/mutate.py --of others --runner build/cpp-$$kind/compgen-sample && \
	    $(BIN)/python -c "from pathlib import Path; from compgen.lm.install import install; \
	        install(Path('build/lm-$$kind'), sanitize='$$kind')" && \
	    for what in resume sources mixtures wire; do \
	        $(BIN)/python scripts/mutate_readers.py --of $$what --runner build/cpp-$$kind/compgen-sample \
	            --ngram build/lm-$$kind/compgen-ngram || exit 1; \
	    done || exit 1; \
	done

clean:
	rm -rf $(VENV) runs build dist
