#!/bin/sh
# Run the nightly suite as the lab's user: tests that need kernel builds or an hour, which lab/test.sh omits.
set -eu
cd "$(dirname "$0")/.."
export WQLAB_ARCHITECTURES=arm64
python -m wqlab_lab.prepare
lab/lava/run.sh root > /dev/null
echo "test: LAVA is installed"
exec python -u -m pytest -p no:cacheprovider -m "nightly and not images" "$@"
