#!/bin/sh
# Build the container images with buildah, as root, and run the services of docker-compose.yml in them in a separate
# network and process namespace. Takes five minutes the first time, with a kernel build twenty; image layers are kept.
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh
if [ "$(id -u)" != 0 ]; then
    echo "test-images: SKIPPED: building images without an engine needs root; run it with sudo or as root" >&2
    exit 0
fi
lab/setup.sh images
# Images are built in the machine's network namespace, which this file descriptor keeps open.
exec 9< /proc/self/ns/net
exec unshare --net --pid --fork --kill-child --mount-proc sh -c '
    ip link set lo up
    exec env PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -u -m pytest -p no:cacheprovider -m images tests/compose "$@"
' test-images "$@"
