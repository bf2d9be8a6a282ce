#!/bin/sh
# Run the default suite as the lab's user: lint, then the tests in three processes. Ends with pytest's summary
# line. The longest tests, the end-to-end tests which share a lab, come first in one of them (conftest.py).
set -eu
cd "$(dirname "$0")/.."
python -m wqlab_lab.web run test & web=$!
lab/lint.sh
wait "$web"
echo "test: web ok"
export WQLAB_ARCHITECTURES=
python -m wqlab_lab.prepare
exec python -u -m pytest -p no:cacheprovider -n 3 --dist loadscope --no-loadscope-reorder --durations 25 -m "not nightly" "$@"
