#!/bin/sh
# Install the wqlab command from this checkout, unless a command of that name is there: install.sh FOLDER
# It makes a Python environment in FOLDER and prints the folder of its programs, to be put into PATH.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
if found=$(command -v wqlab); then
    dirname "$found"
    exit 0
fi
python3 -I -m venv "$1" # -I: not a venv.py of the current folder, which is what a CI job measures
"$1/bin/pip" install --quiet --disable-pip-version-check \
    "$source/contracts" "$source/comparison" "$source/report" "$source/client" >&2
echo "$1/bin"
