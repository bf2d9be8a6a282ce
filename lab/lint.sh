#!/bin/sh
# Checks everything, one gate at a time, each with its own name.
#   lint.sh           all gates
#   lint.sh python    ruff and mypy only
set -eu
cd "$(dirname "$0")/.."
gate() {
    name=$1
    shift
    "$@" > "$log" 2>&1 || { cat "$log"; echo "lint: $name failed" >&2; exit 1; }
    echo "lint: $name ok"
    sed -n 's/^note: /      note: /p' "$log"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
gate "ruff check" ruff check --no-cache .
gate "ruff format" ruff format --no-cache --check .
gate mypy mypy --cache-dir "$WQLAB_CACHE/mypy" contracts comparison report server worker client lab rehearsal
gate "mypy of fixtures and benchmarks" lab/mypy-tests.sh
[ "${1:-}" != python ] || exit 0
gate shellcheck lab/shellcheck.sh
gate "data folders" python -m wqlab_contracts.loading .
gate documentation python -m wqlab_lab.documentation check
gate "web types, lint" python -m wqlab_lab.web run types lint
