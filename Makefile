# Everything lives in .venv; nothing outside the checkout is changed except by `make system-packages` (apt, asks for root).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup
SOURCES := CMakeLists.txt pyproject.toml $(shell find dialect runtime -name '*.td' -o -name '*.h' -o -name '*.cpp' -o -name CMakeLists.txt)
CXX_FILES = $(shell git ls-files '*.cpp' '*.h')
# Tests compile real models: one worker a core, and no more threads inside each.
JOBS ?= $(shell nproc)
FUZZ_EXAMPLES ?= 10000
# Tests start hundreds of processes, none of which shall compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system-packages demo test test-lit test-python fuzz bench-check lint format docs site wheel wheel-check clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) ## Create .venv with every dependency and build the dialect into it

$(VENV)/.deps: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed"; exit 2; }
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || { echo "A C++17 compiler is needed: apt-get install g++"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "python3-venv is needed: apt-get install python3-venv"; exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build --group test --group lint
	@touch $@

$(STAMP): $(VENV)/.deps $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	@touch $@

system-packages: ## Install the Vulkan loader, a CPU driver and the validation layer (Debian, Ubuntu; needs root)
	tools/install-system-packages

demo: setup ## Compile the demo network, verify it, print what changed
	$(BIN)/smartmem demo

test: setup test-lit test-python ## Run every test

test-lit: setup
	$(BIN)/lit -sv -j$(JOBS) test

test-python: setup
	$(BIN)/python -m pytest -q -n $(JOBS)

fuzz: setup ## Run FUZZ_EXAMPLES (10,000) random programs through the passes and through IREE, against NumPy
	SMARTMEM_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest -q test/python/transforms/test_differential.py
	$(BIN)/python test/python/fuzz/fuzz.py --examples $(FUZZ_EXAMPLES) --output out/fuzz

bench-check: setup ## Compare kernels and bytes of the small models with the committed counts
	$(BIN)/python benchmarks/check.py

lint: setup ## Check style, types and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/codespell

format: setup ## Rewrite sources in the project's style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

docs: setup ## Regenerate the generated pages of docs/
	$(BIN)/python tools/generate_docs.py

site: setup ## Build the documentation's site into site/; warnings are errors
	$(BIN)/python -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: setup ## Build a wheel into dist/
	$(BIN)/python tools/build_wheel.py

wheel-check: setup ## Build a wheel, install it into a new venv, run the demo there
	$(BIN)/python tools/build_wheel.py --check

clean: ## Remove build outputs and .venv
	rm -rf $(VENV) build dist out site .mypy_cache .ruff_cache .pytest_cache
