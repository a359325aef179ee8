PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := demo
.PHONY: demo test test-slow test-deep lint bench clean

# The stamp is written last, so an install that was cut short is run again.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[gread,pyg,triton,dev]'
	@touch $@

demo: $(INSTALLED)
	rm -rf runs/demo
	$(VENV)/bin/rdgraph verify all
	$(VENV)/bin/rdgraph study grid --small --out runs/demo/grid
	$(VENV)/bin/rdgraph study oversmoothing --small --out runs/demo/oversmoothing
	$(VENV)/bin/rdgraph study datasets --small --out runs/demo/datasets
	$(VENV)/bin/rdgraph train --dataset digits --splits 0-2 --epochs 60 --out runs/demo/train
	@$(VENV)/bin/python -m studies.runs.index runs/demo

test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2 -q -m "not slow"

test-slow: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2 -q -m slow

# An hour or two; what was done before an interruption is kept. The page is docs/trust.md.
test-deep: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.adversary --count 20000 --questions 1 --jobs 2 --out runs/adversary.jsonl --resume; \
	status=$$?; $(VENV)/bin/python -m tests.adversary.page runs/adversary.jsonl && exit $$status

lint: $(INSTALLED)
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy

bench: $(INSTALLED)
	$(VENV)/bin/python -m studies.benchmarks.symbolic_speed
	$(VENV)/bin/python -m studies.benchmarks.performance
	$(VENV)/bin/python -m studies.benchmarks.training_speed --device cpu --out runs/training_speed.json

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis runs/demo
	find rdgraph analysis gread studies tests -type d -name __pycache__ -prune -exec rm -rf {} +
