#!/bin/sh
# One gate at a time, each with its own name.
set -eu
cd "$(dirname "$0")/.."
gate() {
    name=$1
    shift
    "$@" > "$log" 2>&1 || { cat "$log"; echo "lint: $name failed" >&2; exit 1; }
    echo "lint: $name ok"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
gate "ruff check" ruff check --no-cache .
gate "ruff format" ruff format --no-cache --check .
gate mypy mypy --cache-dir "$WQLAB_CACHE/mypy" contracts comparison server worker client lab
gate "shell syntax" sh -c 'for f in $(find lab deploy testplans worker benchmarks .ci -name "*.sh") .ci/run; do sh -n "$f" || exit 1; done'
gate "data folders" python -m wqlab_contracts.loading .
gate "web types, lint, generated types" python -m wqlab_lab.web run types lint api:check
