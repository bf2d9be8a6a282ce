#!/bin/sh
# Builds the container images and runs the services of docker-compose.yml in them, without an engine: buildah, as root,
# with a network and processes apart from this machine's. Five minutes the first time, with a kernel to build twenty;
# the images' layers are kept.
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh
if [ "$(id -u)" != 0 ]; then
    echo "test-images: SKIPPED: building images without an engine needs root; run it by sudo, or as root" >&2
    exit 0
fi
lab/setup.sh images
# Images are downloaded and built with the machine's network, which stays open as this file.
exec 9< /proc/self/ns/net
exec unshare --net --pid --fork --kill-child --mount-proc sh -c '
    ip link set lo up
    exec env PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -u -m pytest -p no:cacheprovider -m images tests/compose "$@"
' test-images "$@"
