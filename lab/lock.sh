#!/bin/sh
# Write requirements.txt: every dependency of every package, pinned with hashes, without the registry's address.
set -eu
cd "$(dirname "$0")/.."
grep -hoE '^dependencies = \[.*\]' ./*/pyproject.toml | grep -oE '"[^"]+"' | tr -d '"' | grep -v '^wqlab-' | sort -u |
    cat requirements.in - > requirements.all.in
trap 'rm -f requirements.all.in' EXIT
.venv/bin/uv -q pip compile --generate-hashes --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
    requirements.all.in -o requirements.txt
