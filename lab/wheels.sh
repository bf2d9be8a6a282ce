#!/bin/sh
# wheels.sh FOLDER: write the wheels of the `wqlab` command with `wqlab ab`. They hold plans, device types and recipes, and work
# outside of a checkout: pipx install --pip-args="--find-links FOLDER" 'wqlab-client[ab]'
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
for package in contracts comparison report worker client; do
    cp -r "$package" "$scratch/"
done
mkdir "$scratch/client/wqlab_client/data"
cp -r device-types kernels testplans "$scratch/client/wqlab_client/data/"
find "$scratch" -name __pycache__ -prune -exec rm -rf {} +
for package in contracts comparison report worker client; do
    "$scratch/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$out" "$scratch/$package"
done
