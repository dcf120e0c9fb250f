# make help lists the targets. Every target makes the environment it needs.

VENV = .venv
PYTHON =
PYTHONS = python3.11 python3.12 python3.13 python3.14
JOBS = auto
WINDOW = 32000
HISTORIES = 1000000

bin = $(VENV)/bin
installed = $(VENV)/.installed
pytest = $(bin)/python -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal --inline-snapshot=disable
demo = demo-store
sessions = examples/sessions/*.jsonl.gz

# Tests start many processes; without cached bytecode each would compile all of Lading again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv test test-all fuzz check clients providers mutants demo bench format sessions frameworks test-all-pythons clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1 /p' Makefile | awk '{ name = $$1; $$1 = ""; printf "%-18s%s\n", name, $$0 }'

venv: $(installed) ## make the virtual environment

$(installed): pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(VENV) $(PYTHON)
	@touch $@

test: $(installed) ## run the tests that a change needs: few examples of each property, no browser, no kills
	@HYPOTHESIS_PROFILE=quick $(pytest) -m 'not full'

test-all: $(installed) ## run every test, and ask for branch coverage of floors 0 to 3
	@HYPOTHESIS_PROFILE=full COVERAGE_FILE=$(VENV)/.coverage $(pytest) --cov --cov-report= --cov-fail-under=0
	COVERAGE_FILE=$(VENV)/.coverage $(bin)/coverage report

fuzz: $(installed) ## run the generators of faults with many more examples, other ones each time, and HISTORIES histories
	@HYPOTHESIS_PROFILE=thorough $(pytest) -m fuzz
	$(bin)/python -m bench.fuzz $(HISTORIES)

check: $(installed) ## format, lint, types, floors, limits
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python -m scripts.check_limits
	$(bin)/python -m scripts.mutants --check

mutants: $(installed) ## break the code in known ways and see that the tests notice
	$(bin)/python -m scripts.mutants

demo: $(installed) ## replay the example sessions with two strategies side by side and verify every manifest
	@rm -rf $(demo)
	@$(bin)/lading replay $(sessions) --window $(WINDOW) --strategy priced --strategy basic --store $(demo) --report $(demo).html | tee $(demo).txt
	$(bin)/lading verify $(demo)/priced
	$(bin)/lading verify $(demo)/basic
	@echo 'Cost is one half. The other, what each still tells the model: $(bin)/lading compare $(firstword $(wildcard $(sessions)))'
	@grep -E '^(priced|basic): ' $(demo).txt | paste -sd ';' | sed 's/;/; /'

bench: $(installed) ## print the numbers that the README quotes
	$(bin)/python -m bench

format: $(installed) ## format the code and mend what lint can mend
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

sessions: $(installed) ## record the example sessions anew from the committed tree
	$(bin)/python examples/record.py examples/sessions

clients: $(installed) ## run other people's agents against the strict provider, newest versions, and count what breaks a rule
	@$(bin)/python -m scripts.clients

providers: $(installed) ## write the README's list of providers anew
	$(bin)/python -m scripts.providers

frameworks: $(installed) ## run the blocks of docs/howto/frameworks.md with the newest version of each framework
	@$(bin)/python -m scripts.frameworks

test-all-pythons: ## run the tests on each interpreter of PYTHONS that exists here
	@MAKE='$(MAKE)' scripts/test_pythons.sh $(PYTHONS)

clean: ## remove environments, stores and caches
	rm -rf .venv .venv-* $(demo) $(demo).html $(demo).txt .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
