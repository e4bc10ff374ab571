# Every target works on a fresh clone with Python 3.11+ and make; the first one sets up .venv, `demo` only a part of it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test quick toy browser lint bench soak reproduce clean

demo: $(INSTALLED)
	$(BIN)/pairloom demo

test: $(READY) browser
	OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/python -m pytest -n 2 --dist worksteal

quick: $(READY)
	OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/python -m pytest -n 2 --dist worksteal --quick -q tests

# Each benchmark once, so that it cannot rot; CI runs it.
toy: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q -m toy tests/test_benchmarks.py

# The test of the report opens it in Chromium, and skips without one; where Debian's package can be had, it is.
browser:
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome || ! command -v apt-get || \
	   test "$$(id -u)" != 0 || { apt-get update -qq && \
	   DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1 || true

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/sparse.py
	$(BIN)/python benchmarks/systems.py
	$(BIN)/python benchmarks/kernel_systems.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/race.py
	$(BIN)/python benchmarks/columns.py
	$(BIN)/python benchmarks/payments.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/command_line.py
	$(BIN)/python benchmarks/soak.py

# Properties are tried on new examples in every run, unless PAIRLOOM_SOAK_SEED is set.
soak: $(READY)
	OPENBLAS_NUM_THREADS=1 NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 -m "soak or not soak" \
		--hypothesis-profile=soak $(if $(PAIRLOOM_SOAK_SEED),--hypothesis-seed=$(PAIRLOOM_SOAK_SEED))

# The experiments of the paper; ARGS="table --quick" runs a part of them.
ARGS ?= all
reproduce: $(READY)
	$(BIN)/python -m reproduction $(ARGS)

clean:
	rm -rf .venv

# What the demo needs; --no-compile, since most of these files are never imported.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("pairloom needs Python 3.11 or newer: make PYTHON=python3.x ..." if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (less than a minute, once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) -e ".[cli,io,plot]"
	@touch $@

$(READY): $(INSTALLED)
	@echo "Adding the tools of development to .venv (about a minute, once) ..."
	@$(PIP) -e ".[dev]"
	@touch $@
