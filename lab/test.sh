#!/bin/sh
# The whole test suite, as the lab's user: lint first, then every test, whole submissions last; ends with pytest's own
# summary line.
set -eu
cd "$(dirname "$0")/.."
lab/lint.sh
python -m wqlab_lab.web run test
echo "test: web ok"
python -m wqlab_lab.prepare
exec python -m pytest -p no:cacheprovider "$@"
