# Every target makes what it needs in .venv; a fresh machine needs Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check docs bench-server bench-kernels gpu clean

$(VENV)/.ready: pyproject.toml requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# The main job: a real headless Neovim opens an example, runs the action and applies the edit.
demo: $(VENV)/.ready
	$(BIN)/python editors/nvim/demo/run.py

# Everything that is checked before a change lands.
test: check
	$(BIN)/python -m pytest -q -m "not gpu" -n 2 --dist loadfile

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python -m kernel_lsp.docgen --check

docs: $(VENV)/.ready
	$(BIN)/python -m kernel_lsp.docgen

# Latency of the server while a search runs; prints a table.
bench-server: $(VENV)/.ready
	$(BIN)/python benchmarks/server.py

# Every example on a GPU: baseline, best, twin, eager, torch.compile. Needs a GPU.
bench-kernels: $(VENV)/.ready
	$(BIN)/python benchmarks/kernels.py --resume

clean:
	rm -rf $(VENV) .demo .pytest_cache .ruff_cache .hypothesis
