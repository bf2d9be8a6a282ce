#!/bin/sh
# biome.sh ARGUMENT...: runs the biome of web/'s packages in web/, on files named from the root of the checkout.
set -eu
cd "$(dirname "$0")/../web"
biome=node_modules/@biomejs/cli-linux-x64/biome
[ -x "$biome" ] || { echo "web/node_modules is missing: run \`make web-packages\` once" >&2; exit 2; }
count=$#
while [ "$count" -gt 0 ]; do
    set -- "$@" "${1#web/}"
    shift
    count=$((count - 1))
done
exec "$biome" "$@"
