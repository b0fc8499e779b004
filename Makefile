PY := .venv/bin/python

run: .venv/ok ; @$(PY) -P -m specopt demo
test: .venv/ok ; $(PY) -P -m pytest -n 2
quick: .venv/ok ; $(PY) -P -m pytest -n 2 -m "not slow"
check: .venv/ok types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	PYTHONPATH=build/static .venv/bin/lint-imports
	$(PY) -m mypy
types: ; @rm -rf build/static && mkdir -p build/static/specopt && ln -s $(CURDIR)/optimizer/* $(addprefix $(CURDIR)/,models solvers instances) build/static/specopt/
.venv/ok: pyproject.toml ; python3 -m venv .venv && $(PY) -m pip install -q -e '.[dev]' && touch $@

.PHONY: run test quick check types
