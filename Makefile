PYTHON ?= python3
VENV := .venv
# Bytecode is kept, whatever the environment says: tests and commands start many processes that load the same files.
export PYTHONDONTWRITEBYTECODE :=
INSTALLED := $(VENV)/.installed
# Half of the tests to each process, in their order, so that what a module prepares is prepared once; then they help out.
PYTEST := OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2 --dist worksteal -q

.DEFAULT_GOAL := demo
# What developing and testing need beside; `make demo` does not wait for it.
TOOLS := $(VENV)/.tools
# What the site needs; slow tests make notebooks and figures with it.
DOCS := $(VENV)/.docs
.PHONY: coq demo test test-slow test-deep test-gpu measured mutants wheel docs links lint bench clean

# The stamp is written last, so an install that was cut short is run again.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[gread]'
	@touch $@

$(TOOLS): $(INSTALLED)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[gread,pyg,ogb,triton,dev,cluster]'
	@touch $@

$(DOCS): $(INSTALLED)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

demo: $(INSTALLED)
	rm -rf runs/demo
	$(VENV)/bin/rdgraph verify all
	$(VENV)/bin/rdgraph explore --out runs/demo/explorer.html
	$(VENV)/bin/rdgraph study grid --small --out runs/demo/grid
	$(VENV)/bin/rdgraph study datasets --small --out runs/demo/datasets
	$(VENV)/bin/rdgraph train --dataset digits --splits 0-2 --epochs 60 --out runs/demo/train
	@$(VENV)/bin/python -m studies.runs.index runs/demo

# Property tests are given a tenth of their examples here, and tests of many cases three of these: the rest is in test-slow.
test: $(TOOLS)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow"

test-slow: $(TOOLS) $(DOCS)
	HYPOTHESIS_PROFILE=ci $(PYTEST) -m "(slow or hypothesis) and not deep"

# An hour or two; what was done before an interruption is kept. The page is docs/measured/trust.md.
test-deep: $(TOOLS)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.adversary --count 20000 --questions 1 --jobs 2 --certificates --out runs/adversary.jsonl --resume; \
	status=$$?; $(VENV)/bin/python -m tests.adversary.page runs/adversary.jsonl && exit $$status
	HYPOTHESIS_PROFILE=deep $(PYTEST) -m hypothesis
	HYPOTHESIS_PROFILE=ci $(PYTEST) -m deep
	HYPOTHESIS_PROFILE=deep $(PYTEST) tests/rdgraph/reports/test_exhausting_lines.py

# Kernels are compiled here, not interpreted; a test that is skipped would say nothing.
test-gpu: $(TOOLS)
	$(VENV)/bin/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "expected a CUDA device, got none")'
	TRITON_INTERPRET=0 $(VENV)/bin/python -m pytest -q -m gpu tests
	TRITON_INTERPRET=0 $(VENV)/bin/python -m pytest -q tests/rdgraph/graphs/kernels tests/gread/kernels

# The claims as Coq theorems, checked by coqc; the record of what was accepted is rdgraph/data/coq/checked.toml.
COQ_PACKAGES := coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-coquelicot
coq: $(INSTALLED)
	@if ! command -v coqc >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" -eq 0 ]; then \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(COQ_PACKAGES) >/dev/null; fi
	$(VENV)/bin/python -m rdgraph.reports.coq.kernel build/coq

# Hours on a GPU; resumable. MEASURED='--seconds 600 --only depth' limits the time and selects measurements.
measured: $(TOOLS)
	-$(VENV)/bin/python -m studies.benchmarks all $(MEASURED)
	$(VENV)/bin/python -m studies.benchmarks all $(MEASURED) --pages

# About half a minute of processor time a mutant: MUTANTS="--jobs 16 --resume". The page is docs/measured/mutants.md.
mutants: $(TOOLS)
	$(VENV)/bin/python -m tests.mutants $(MUTANTS)

# What a user gets: the wheel alone, in a new environment, used from a folder outside of the checkout.
wheel:
	rm -rf build/wheel dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	build/wheel/bin/python -m pip install --quiet -c constraints.txt "$$(ls dist/*.whl)[gread]"
	$(PYTHON) -m tests.repository.installed_wheel dist/*.whl build/wheel/bin/python

# The site, in build/docs/index.html: gallery and tutorials are run, warnings are errors, nothing is loaded from a network.
docs: $(DOCS)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	$(VENV)/bin/python -m docs.building.built_site build/docs

# The links and the names of modules and files in every page.
links: $(TOOLS)
	$(VENV)/bin/python -m pytest -q tests/repository/test_readme.py -k "links or named or folder"

lint: $(TOOLS)
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy

# py-pde, the peer on grids, is installed for this alone.
bench: $(TOOLS)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	$(VENV)/bin/python -m studies.benchmarks symbolic-speed
	$(VENV)/bin/python -m studies.benchmarks compiled-speed --out runs/compiled_speed.json
	$(VENV)/bin/python -m studies.benchmarks performance
	$(VENV)/bin/python -m studies.benchmarks training-speed --device cpu --out runs/training_speed.json

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants runs/demo docs/generated
	find rdgraph analysis gread studies tests docs -type d -name __pycache__ -prune -exec rm -rf {} +
