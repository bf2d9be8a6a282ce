#!/bin/sh
# as-user.sh COMMAND...: run a command as the lab's user, in the checkout, with a minimal environment. Root switches to
# the user `wqlab`; any other user runs the command itself.
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh

home=$HOME
[ "$(id -u)" != 0 ] || home=$(getent passwd "$lab_user" | cut -d: -f6)
set -- HOME="$home" PATH="$PWD/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
for name in CI TERM COLUMNS LINES NO_COLOR LANG TZ WQLAB_CACHE WQLAB_STATE WQLAB_ARTIFACTS WQLAB_DATA_DIR WQLAB_LOCAL_GIT_PATHS \
    WQLAB_PRIVATE_GIT_HOSTS WQLAB_SANDBOX_WATCHED WQLAB_LEASE_S WQLAB_CHAOS_SEED WQLAB_CHAOS_STRIKES WQLAB_CHAOS_STOP_S \
    WQLAB_QUOTA_WAITING WQLAB_QUOTA_DEVICE_MINUTES WQLAB_QUOTA_BUILD_MINUTES WQLAB_QUOTA_BYTES \
    WQLAB_PUBLIC_READING WQLAB_PUBLIC_URL FORWARDED_ALLOW_IPS WQLAB_SERVE WQLAB_TLS WQLAB_ARTIFACT_URL WQLAB_ARTIFACT_OPTIONS \
    WQLAB_LAVA_URL WQLAB_LAVA_TOKEN_FILE WQLAB_LAVA_LISTEN WQLAB_LAVA_WORKER_HOST WQLAB_LAVA_MIRROR \
    WQLAB_URL WQLAB_TOKEN http_proxy https_proxy no_proxy SSL_CERT_FILE; do
    eval "value=\${$name-}"
    [ -z "$value" ] || set -- "$name=$value" "$@"
done
if [ "$(id -u)" = 0 ]; then
    exec runuser -u "$lab_user" -- env -i "$@"
fi
exec env -i "$@"
