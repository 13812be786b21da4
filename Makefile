# Targets describe themselves: `make` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SOURCES := src tests benchmarks docs/extensions

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-all test-gpu test-kernels test-clusters test-lowest lint types contracts docs bench bench-gpu pgvector fuzz pr format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Onoma needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.quickstart: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[quickstart]'
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.quickstart

quickstart: $(VENV)/.quickstart ## install into .venv and run the main job on real data (MONDO), 4 to 10 minutes
	$(BIN)/onoma quickstart

ON_CPU := CUDA_VISIBLE_DEVICES= # where a run gives the same weights to the bit
test: $(VENV)/.dev ## the fast tests and the doctests, a process for each core (four at most), each with one thread; the same examples each time
	$(ON_CPU) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'not slow' --numprocesses logical --maxprocesses 4 --dist loadfile

test-all: $(VENV)/.dev ## all tests, slow ones too, one after the other with as many threads as there are cores; other examples each time
	$(ON_CPU) $(BIN)/python -m pytest --hypothesis-profile others

test-gpu: $(VENV)/.dev ## what must hold on a GPU, on this machine's
	$(BIN)/python -c 'import torch; assert torch.cuda.is_available(), "torch sees no GPU here"'
	$(BIN)/python -m pytest tests/training/test_training_devices.py tests/training/test_training_graphs.py tests/training/test_training_distributed.py tests/encoders/test_encoders_short_attention.py tests/encoders/test_encoders_compliance.py

.triton/.created: | $(VENV)/.dev
	rm -rf .triton
	$(PIP) --no-deps --target .triton triton==3.6.0
	@touch $@

test-kernels: .triton/.created ## the tests of the kernels for GPUs, which Triton (1 GB, into .triton) interprets on a CPU
	TRITON_INTERPRET=1 PYTHONPATH=.triton $(BIN)/python -m pytest --numprocesses 0 tests/encoders/test_encoders_short_attention.py

.clusters/.created: | $(VENV)/.dev
	rm -rf .clusters
	$(PIP) --target .clusters 'ray[data]==2.60.0' 'pyspark[sql]==4.3.0'
	@touch $@

test-clusters: .clusters/.created ## the tests on Ray (a local cluster of two nodes) and Spark (which needs Java); both (1 GB) into .clusters
	PYTHONPATH=$(CURDIR)/.clusters $(BIN)/python -m pytest tests/mapping/test_mapping_ray.py tests/mapping/test_mapping_preparing.py tests/mapping/test_mapping_spark.py

LOWEST := .venv-lowest
$(LOWEST)/.dev: pyproject.toml constraints.txt
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	grep '^torch==' constraints.txt > $(LOWEST)/torch.txt
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --extra dev --extra ray --extra wandb --extra mlflow \
		--constraint $(LOWEST)/torch.txt --no-header --no-annotate --output-file $(LOWEST)/all.txt pyproject.toml
	grep -vE '^(cuda|nvidia|triton)' $(LOWEST)/all.txt > $(LOWEST)/versions.txt # torch knows which of these it needs
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-lowest: $(LOWEST)/.dev ## the fast tests with the earliest versions that pyproject.toml allows (torch: as in constraints.txt)
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -m 'not slow' --numprocesses logical --maxprocesses 4 --dist loadfile -W default

lint: $(VENV)/.dev ## ruff: rules and format
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

format: $(VENV)/.dev ## let ruff rewrite what it can
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

contracts: $(VENV)/.dev ## which room may import which
	$(BIN)/lint-imports

docs: $(VENV)/.dev ## build the documentation, strictly, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # with --quiet no warning would be counted

bench: $(VENV)/.dev ## measure speed against the reference design, as ratios in one run
	$(BIN)/python benchmarks/loss_and_mining.py
	$(BIN)/python benchmarks/data_preparation.py
	$(BIN)/python benchmarks/encoding.py
	$(BIN)/python benchmarks/training_step.py

bench-gpu: $(VENV)/.dev ## measure training on a GPU, after checking its vectors; an epoch of the UMLS, extrapolated
	$(BIN)/python benchmarks/gpu_training.py --device cuda

pgvector: $(VENV)/.dev ## start a PostgreSQL of its own, index vectors in it, measure recall and time
	$(BIN)/python benchmarks/postgresql.py

MINUTES ?= 10
fuzz: $(VENV)/.dev ## spoil the input of every reader for MINUTES (10) of processor time
	$(BIN)/python tests/terminology/fuzz_readers.py --minutes $(MINUTES)

pr: lint types contracts docs test-all ## everything a change must pass before it is offered

clean: ## remove what was built (not the quickstart's folder)
	rm -rf $(VENV) $(LOWEST) .triton .clusters site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
