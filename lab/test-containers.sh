#!/bin/sh
# Run README's container commands under a real Docker Engine, as root. It takes 50 minutes, the first time 15 more.
# The engine is Debian 13's, beside whatever this machine has; images and kernels are kept in the cache.
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh
if [ "$(id -u)" != 0 ]; then
    echo "test-containers: SKIPPED: an engine needs root; run it with sudo or as root" >&2
    exit 0
fi
lab/setup.sh containers no-pages
PATH="$PWD/.venv/bin:$PATH" exec .venv/bin/python -u -m pytest -p no:cacheprovider -rP -m images tests/compose "$@"
