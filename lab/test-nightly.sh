#!/bin/sh
# Run the nightly suite as the lab's user: tests that need kernel builds or an hour, which lab/test.sh omits, and the
# pages in every width and theme.
set -eu
cd "$(dirname "$0")/.."
export WQLAB_ARCHITECTURES=arm64 WQLAB_EVERY_VIEW=1
python -m wqlab_lab.prepare
# Kernels of rehearsal machines, before labs wait for each other's start.
for arch in x86_64 arm64; do
    python -m wqlab_worker.build.prepare kernel --recipe measure-hardware --arch "$arch" > /dev/null
done
lab/lava/run.sh root > /dev/null
echo "test: LAVA is installed"
status=0
python -u -m pytest -p no:cacheprovider tests/scenarios/pages -m "not nightly" || status=$?
python -u -m pytest -p no:cacheprovider -m "nightly and not images" "$@" || status=$?
# Figures of modelled devices against published ones: it fails if testplans/validation.yaml no longer says what is found.
python -m wqlab_bench.model.build_qemu && python benchmarks/validate_model.py "$WQLAB_CACHE/model-validation" || status=$?
exit "$status"
