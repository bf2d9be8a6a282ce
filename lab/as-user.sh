#!/bin/sh
# as-user.sh COMMAND...: run a command as the lab's user, in the checkout, with a minimal environment and all variables
# that begin with WQLAB_. Root switches to the user `wqlab`; any other user runs the command itself.
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh

home=$HOME
[ "$(id -u)" != 0 ] || home=$(getent passwd "$lab_user" | cut -d: -f6)
set -- HOME="$home" PATH="$PWD/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
for name in CI TERM COLUMNS LINES NO_COLOR LANG TZ FORWARDED_ALLOW_IPS http_proxy https_proxy no_proxy SSL_CERT_FILE \
    $(env | sed -n 's/^\(WQLAB_[A-Z0-9_]*\)=.*/\1/p'); do
    eval "value=\${$name-}"
    [ -z "$value" ] || set -- "$name=$value" "$@"
done
if [ "$(id -u)" = 0 ]; then
    exec runuser -u "$lab_user" -- env -i "$@"
fi
exec env -i "$@"
