#!/bin/sh
# The test suite, but for what is kept for the night, as the lab's user: lint first, then every test, three at a time, for
# some of them wait; ends with pytest's own summary line. The longest come first: the end-to-end tests, which share two labs.
set -eu
cd "$(dirname "$0")/.."
python -m wqlab_lab.web run test & web=$!
lab/lint.sh
wait "$web"
echo "test: web ok"
export WQLAB_ARCHITECTURES=arm64
python -m wqlab_lab.prepare
lab/lava/run.sh root > /dev/null
echo "test: LAVA is installed"
exec python -u -m pytest -p no:cacheprovider -n 3 --no-loadscope-reorder --durations 25 -m "not nightly" "$@"
