# wqlab. `make` without a target lists the targets.
SHELL := /bin/sh
AS_USER := lab/as-user.sh
BUILD_MODEL := $(AS_USER) python -m wqlab_bench.model.build_qemu

.DEFAULT_GOAL := help

# Nothing of the lab runs as root, so the lab's user must be able to read the checkout.
ifneq ($(shell [ "$$(id -u)" != 0 ] || runuser -u nobody -- test -r "$(CURDIR)/Makefile" && echo yes),yes)

%:
	@lab/from-copy.sh $@

else

.PHONY: chaos doctor help setup setup-python setup-model model demo rehearse stop-rehearsal up restart dev arm64 password stop down status docs lint lint-python format test test-nightly \
    test-unit test-one test-web golden web-packages bench lock openapi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing: Debian packages, the lab's user when root, the Python environment; build the pages
	@lab/setup.sh model
	@$(BUILD_MODEL) --background

demo: setup-model ## start a lab here, submit the example series and a settings study, print the reports
	@$(AS_USER) wqlab-lab demo

up: setup-model ## start the lab (or apply changed device types) and leave it running
	@$(AS_USER) wqlab-lab up

restart: setup ## load changed code, pages and documentation into a running lab
	@$(AS_USER) wqlab-lab restart

dev: setup web-packages ## run the lab with reload on change: API, workers and pages, on the data of `make demo`
	@$(AS_USER) wqlab-lab dev

docs: setup ## build the documentation and check its links; a running lab serves it under /docs/ after `make restart`
	@$(AS_USER) python -m wqlab_lab.documentation build

arm64: ## add emulated arm64 devices (cross compiler, QEMU, about 10 minutes for their golden kernel)
	@lab/setup.sh arm64
	@$(AS_USER) wqlab-lab arm64

model: ## build the QEMU of modelled devices now (about 5 minutes); `make setup`, `up` and `demo` do it in the background
	@lab/setup.sh no-pages model
	@$(BUILD_MODEL)

rehearse: setup ## start a lab of its own with machines of docs/hardware, emulated behind their protocols: M="xeon ryzen ssh-only dual-boot chromebook"
	@lab/setup.sh rehearsal
	@$(if $(findstring chromebook,$(M)),lab/setup.sh arm64,true)
	@$(AS_USER) wqlab-lab rehearse $(or $(M),xeon)

stop-rehearsal: ## stop the lab of `make rehearse` and remove its state folder
	@$(AS_USER) wqlab-lab stop-rehearsal

password: ## create a new password for the lab's administrator
	@$(AS_USER) wqlab-lab password

status: ## list the lab's programs and its address
	@$(AS_USER) wqlab-lab status

doctor: ## check every part of the lab and say what to do about each problem
	@$(AS_USER) wqlab-lab doctor

stop: ## stop the lab and keep its data
	@$(AS_USER) wqlab-lab stop

down: ## stop the lab and remove its state folder (the cache of builds and images stays)
	@$(AS_USER) wqlab-lab down

setup-python:
	@lab/setup.sh no-pages

setup-model:
	@lab/setup.sh no-pages model
	@$(BUILD_MODEL) --background

web-packages: setup ## install web/node_modules in the checkout, for `make dev`; write the REST API's types, for editors
	@ln -sfn "$$($(AS_USER) python -m wqlab_lab.web packages)/node_modules" web/node_modules
	@mkdir -p web/src/api/gen
	@$(AS_USER) python -m wqlab_lab.web types > web/src/api/gen/new && mv web/src/api/gen/new web/src/api/gen/schema.ts

lint: ## run all checks: ruff, mypy, shellcheck, data folders, documentation; types and biome of web/
	@lab/setup.sh tests
	@$(AS_USER) lab/lint.sh

lint-python: setup-python ## run only ruff and mypy, without building the pages
	@$(AS_USER) lab/lint.sh python

format: ## format the Python code with ruff
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

test: ## run the default suite: lint, unit, integration, devices, end to end with a browser
	@lab/setup.sh tests
	@lab/setup.sh rehearsal
	@lab/setup.sh arm64
	@$(AS_USER) lab/test.sh

test-nightly: ## run the nightly suite: series that change what a plan counts, other kernels and recipes, the container images
	@lab/setup.sh tests
	@lab/setup.sh rehearsal
	@lab/setup.sh arm64
	@lab/setup.sh no-pages model
	@$(AS_USER) lab/test-nightly.sh
	@lab/test-containers.sh

chaos: ## disturb a lab at random while it measures: STRIKES=500 SEED=1 (one to two hours)
	@lab/setup.sh tests
	@WQLAB_CHAOS_STRIKES=$(or $(STRIKES),500) WQLAB_CHAOS_SEED=$(or $(SEED),1) $(AS_USER) \
	    python -u -m pytest -p no:cacheprovider tests/scenarios/test_chaos.py -m nightly

test-unit: setup-python ## run the tests that need no service, without building the pages
	@$(AS_USER) python -m pytest -p no:cacheprovider -m "not integration and not device and not scenario and not nightly"

test-one: ## run files, folders or tests: make test-one T=server/tests/jobs/test_claims.py; M=nightly: also nightly tests
	@lab/setup.sh tests no-pages
	@$(AS_USER) python -m pytest -p no:cacheprovider $(if $(M),,-m "not nightly") $(T)

test-web: setup ## run the unit tests of web/, or only some: make test-web T=src/pages/plans
	@$(AS_USER) python -m wqlab_lab.web test $(T)

golden: setup-python ## rewrite the expected schema of messages and the expected reports of tests; read the diff
	@WQLAB_WRITE_GOLDEN=1 .venv/bin/python -m pytest -q -p no:cacheprovider contracts/tests/test_golden.py
	@.venv/bin/python report/tests/rewrite.py
	@WQLAB_WRITE_GOLDEN=1 .venv/bin/python -m pytest -q -p no:cacheprovider server/tests/sources/test_culprit_mail.py

bench: setup ## measure the figures of benchmarks/README.md
	@$(AS_USER) sh benchmarks/run.sh

lock: ## write requirements.txt, with hashes, from the packages' lists
	@lab/lock.sh

openapi: setup-python ## write server/openapi.json from the code
	@.venv/bin/wqlab-server openapi > server/openapi.json

endif
