# Everything by name. POSIX make and shell, nothing else; `make` alone lists the names.

VENV = .venv
PY = $(VENV)/bin/python
READY = $(VENV)/.installed
CONFIG = conf/digits.yaml
RUNS = runs
PORT = 5000
PREFECT_PORT = 4200
DATA =

help:
	@echo 'make run    quick start: install if needed, then run the experiment CONFIG (conf/digits.yaml); minutes the first time'
	@echo 'make test   lint, types and tests, about twenty minutes; FAST=1, about two, leaves out tests that'
	@echo '            start servers, clusters or whole flows (pytest -m server) or take a third of a second (-m slow)'
	@echo 'make lint   ruff: rules and format'
	@echo 'make types  mypy'
	@echo 'make ui     serve the MLflow pages of the runs in RUNS (runs) on http://127.0.0.1:PORT (5000)'
	@echo 'make paper  every table and figure of the paper, about two hours; FAST=1: small versions, 13 minutes'
	@echo 'make up     start Prefect (PREFECT_PORT, 4200), MLflow (PORT, 5000) and a worker, and deploy prefect.yaml;'
	@echo '            deployed runs may use data/, LDSVM_DATA_HOME, RUNS and the folders in DATA'
	@echo 'make status show the state of these services, and the deployments; make down stops them'
	@echo 'make measured  update the tables of README.md and docs/results from docs/measured'
	@echo 'make docs   build the site, in docs/_build/html, with the figures of the gallery, and open it in a browser, if any'
	@echo 'make container  build the image and try all of compose.yaml with it, a quarter of an hour; needs Docker or Podman, or'
	@echo '            on Debian root, buildah, debootstrap and postgresql; logs go to RUNS/container'
	@echo 'make lock   write requirements.lock again from pyproject.toml'
	@echo 'make clean  remove results, prepared data and caches of tools; $(VENV) and data/raw stay'

run: $(READY)
	@$(PY) -m flows pipeline $(CONFIG)

# Threads that wait for others would spin, and take the cores from the other half of the tests. Where the environment
# keeps Python from writing bytecode, each of the many processes would compile Prefect, MLflow and Ray anew.
# The kernels are compiled in one process, a minute, while mypy runs: else each of the first that fit would compile all.
test: lint
	@$(PY) -m tests.kernels & kernels=$$!; $(PY) -m mypy && wait $$kernels || { kill $$kernels 2>/dev/null; exit 1; }
	@if [ -z "$$LDSVM_DATA_HOME" ] && [ -d ../shared/data ]; then \
		LDSVM_DATA_HOME=$$(cd ../shared/data && pwd); export LDSVM_DATA_HOME; \
	fi; \
	PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(if $(FAST),-m 'not server and not slow')

lint: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(READY)
	$(PY) -m mypy

# The values travel through the environment: no quoting of theirs can reach the shell or Python.
ui: export RUNS := $(RUNS)
ui: export PORT := $(PORT)
ui: export MLFLOW_TRACKING_URI :=
ui: $(READY)
	@[ -f "$$RUNS/mlflow.db" ] || { echo "RUNS=$$RUNS holds no mlflow.db; allowed: the folder of a run, see make run" >&2; exit 2; }
	@$(PY) -c 'import os, socket; socket.create_server(("127.0.0.1", int(os.environ["PORT"]))).close()' 2>/dev/null || \
		{ echo "PORT=$$PORT cannot be used; allowed: the number of a free port, as in make ui PORT=5001" >&2; exit 2; }
	@echo 'The server answers after some 15 seconds; then open one of these (Ctrl-C stops it):'
	@$(PY) -c 'import os, pathlib, sys; sys.excepthook = lambda kind, error, trace: print(error, file=sys.stderr); \
		from ldsvm.tracking.client import links; \
		print(*links(pathlib.Path(os.environ["RUNS"]), int(os.environ["PORT"])), sep="\n")'
	@MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false PYTHONWARNINGS=ignore \
		exec $(PY) -m flows.launcher ldsvm.tracking.ui "$$RUNS" "$$PORT"

paper: $(READY)
	@$(PY) -m flows.paper $(if $(FAST),--fast) "paths.runs=$(RUNS)"

up down status: export RUNS := $(RUNS)
up down status: export DATA := $(DATA)
up down status: export PORT := $(PORT)
up down status: export PREFECT_PORT := $(PREFECT_PORT)
up down status: $(READY)
	@PYTHONDONTWRITEBYTECODE= $(PY) -m flows.service $@

lock: $(READY)
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-annotate -o requirements.lock

measured: $(READY)
	@$(PY) -m benchmarks.measured

# Figures whose script is as it was are kept. A terminal on a screen opens the site; elsewhere its path is enough.
docs: $(READY)
	@MPLBACKEND=agg $(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "$$PWD/docs/_build/html/index.html"
	@if [ -t 1 ] && [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]; then $(PY) -m webbrowser "file://$$PWD/docs/_build/html/index.html"; fi

container: export RUNS := $(RUNS)
container: $(READY)
	@$(PY) -m tests.container "$$RUNS/container"

clean: export RUNS := $(RUNS)
clean:
	@for file in "$$RUNS"/service/*.pid; do [ ! -e "$$file" ] || \
		{ echo "RUNS=$$RUNS is in use by what make up started; allowed: a folder after make down" >&2; exit 2; }; done
	rm -rf "$$RUNS" data/prepared dist docs/_build docs/auto_gallery .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# PYTHON chooses the interpreter; without it the first of these that is new enough.
$(READY): requirements.lock
	@for python in $${PYTHON:-python3 python3.13 python3.12 python3.11}; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "PYTHON is $${PYTHON:-python3 ($$(python3 --version 2>&1))}; allowed: Python 3.11 or newer, as in make PYTHON=python3.12 run" >&2; \
		exit 2; \
	fi; \
	[ -x $(PY) ] || $$found -m venv $(VENV)
	@[ -x $(VENV)/bin/uv ] || $(PY) -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@echo 'Installing the packages of requirements.lock into $(VENV), once'
	@$(VENV)/bin/uv pip sync --quiet --python $(PY) --require-hashes requirements.lock
	@$(VENV)/bin/uv pip install --quiet --python $(PY) --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: help run test lint types ui paper up down status measured docs lock container clean
