#!/bin/sh
# What `lab/test.sh` leaves out, as the lab's user: it costs kernel builds, or an hour.
set -eu
cd "$(dirname "$0")/.."
export WQLAB_ARCHITECTURES=arm64
python -m wqlab_lab.prepare
lab/lava/run.sh root > /dev/null
echo "test: LAVA is installed"
exec python -u -m pytest -p no:cacheprovider -m "nightly and not images" "$@"
