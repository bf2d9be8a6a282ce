#!/bin/sh
# environment.sh FOLDER PACKAGE...: create a Python environment with these packages of the checkout and their
# dependencies, at the versions and with the hashes of requirements.txt. Run while the images are built.
set -eu
folder=$1
shift
uv="/opt/build/bin/uv -q --no-cache"
needs=$(mktemp)
trap 'rm -f "$needs"' EXIT
for package in "$@"; do
    [ "$package" = lab ] || grep -hoE '^dependencies = \[.*\]' "$package/pyproject.toml" | grep -oE '"[^"]+"' | tr -d '"'
done | grep -v '^wqlab-' | sort -u > "$needs"
python3 -m venv --without-pip "$folder"
# shellcheck disable=SC2086
$uv pip install --python "$folder/bin/python" --compile-bytecode --verify-hashes -c requirements.txt -r "$needs"
# Build the packages with the pinned hatchling.
for package in "$@"; do
    PATH="/opt/build/bin:$PATH" $uv build --wheel --no-build-isolation --python /opt/build/bin/python -o /tmp/wheels "$package"
done
$uv pip install --python "$folder/bin/python" --compile-bytecode --no-deps --offline /tmp/wheels/*.whl
rm -rf /tmp/wheels
