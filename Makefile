# wqlab. `make` alone lists what there is.
SHELL := /bin/sh
AS_USER := lab/as-user.sh

.DEFAULT_GOAL := help

# Nothing of the lab runs as root, so the lab's user must be able to read the checkout.
ifneq ($(shell [ "$$(id -u)" != 0 ] || runuser -u nobody -- test -r "$(CURDIR)/Makefile" && echo yes),yes)

%:
	@lab/from-copy.sh $@

else

.PHONY: help setup demo up arm64 password stop down status lint format test test-nightly test-unit bench lock openapi

help: ## what you can make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing: Debian packages, the lab's user when root, the Python environment; build the pages
	@lab/setup.sh

demo: setup ## start a lab here, submit the example series and a settings study, print the reports
	@$(AS_USER) wqlab-lab demo

up: setup ## start the lab (or apply changed device types) and leave it running
	@$(AS_USER) wqlab-lab up

arm64: ## add emulated arm64 devices (cross compiler, QEMU, about 10 minutes for their golden kernel)
	@lab/setup.sh arm64
	@$(AS_USER) wqlab-lab arm64

password: ## make a new password for the lab's administrator
	@$(AS_USER) wqlab-lab password

status: ## what runs, and where
	@$(AS_USER) wqlab-lab status

stop: ## stop the lab, keep its data
	@$(AS_USER) wqlab-lab stop

down: ## stop the lab and remove its state folder (the cache of builds and images stays)
	@$(AS_USER) wqlab-lab down

lint: setup ## ruff, mypy, shell syntax, data folders; types, biome and generated types of web/
	@$(AS_USER) lab/lint.sh

format: ## let ruff format the Python
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

test: ## everything: lint, unit, integration, devices, end to end with a browser
	@lab/setup.sh tests
	@lab/setup.sh arm64
	@$(AS_USER) lab/test.sh

test-nightly: ## what `make test` leaves out: series that change what a plan counts, other kernels, other recipes, the container images
	@lab/setup.sh tests
	@lab/setup.sh arm64
	@$(AS_USER) lab/test-nightly.sh
	@lab/test-images.sh

test-unit: setup ## only the tests that need no service
	@$(AS_USER) python -m pytest -p no:cacheprovider -m "not integration and not device and not scenario and not nightly"

bench: setup ## the figures of benchmarks/README.md
	@$(AS_USER) sh benchmarks/run.sh

lock: ## write requirements.txt, with hashes, from the packages' lists
	@lab/lock.sh

openapi: setup ## write server/openapi.json from the code, and the web's types from it
	@.venv/bin/wqlab-server openapi > server/openapi.json
	@$(AS_USER) python -m wqlab_lab.web types > web/schema.tmp && mv web/schema.tmp web/src/api/gen/schema.ts

endif
