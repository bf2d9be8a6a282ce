#!/bin/sh
# merge_config.sh -m -O FOLDER BASE FRAGMENT...: later lines win. Wants a temporary file where it stands, as the real one.
set -e
[ "$1 $2" = "-m -O" ]
folder=$3
shift 3
merged=$(mktemp ./.tmp.config.XXXXXXXXXX)
cat "$@" > "$merged"
cp "$merged" "$folder/.config"
rm "$merged"
