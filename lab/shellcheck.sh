#!/bin/sh
# Checks every shell script of the checkout with shellcheck, the scripts that run on devices included.
set -eu
cd "$(dirname "$0")/.."
find . \( -name .git -o -name .venv -o -name node_modules \) -prune -o -type f -print |
    while read -r file; do
        case $file in
            *.sh) echo "$file" ;;
            *.py | *.ts | *.tsx | *.md | *.json | *.png | *.in) ;; # a test checks the filled template
            *) head -c 64 "$file" | head -n 1 | tr -d '\0' | grep -Eq '^#!.*/(env )?(ba|da)?sh( |$)' && echo "$file" ;;
        esac
    done | sort | xargs shellcheck -x -P SCRIPTDIR
