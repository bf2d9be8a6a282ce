#!/bin/sh
# Install what is missing: Debian packages, the lab's user (as root), the Python environment, the built web pages.
# It can be run again, and does nothing if everything is installed. It starts no system service.
#   setup.sh              everything that a lab needs
#   setup.sh tests        also everything that only its tests need
#   setup.sh arm64        also everything that arm64 devices need
#   setup.sh model        also everything that builds the QEMU of modelled devices
#   setup.sh no-pages     without web pages and documentation, for checks of Python code
set -eu
cd "$(dirname "$0")/.."
. lab/env.sh
lists=lab/packages.txt
pages=yes
for part; do
    case $part in
        no-pages) pages= ;;
        *) lists="$lists lab/packages-$part.txt" ;;
    esac
done

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || die "this needs Debian 12 on amd64"

missing_packages() {
    # shellcheck disable=SC2086,SC2013  # a list of files, with one package name on each line
    for name in $(cat $lists | grep -v '^#'); do
        dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || echo "$name"
    done
}

# A package's start-up script must not start a daemon or create a cluster: the lab runs its own in its folder.
install_script='
set -eu
export DEBIAN_FRONTEND=noninteractive
guard=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/wqlab-setup.conf
made_guard= made_cluster=
cleanup() {
    [ -z "$made_guard" ] || rm -f "$guard"
    [ -z "$made_cluster" ] || rm -f "$cluster"
}
trap cleanup EXIT
trap "exit 1" INT TERM
if [ ! -e "$guard" ]; then
    made_guard=1
    printf "#!/bin/sh\nexit 101\n" > "$guard"
    chmod 755 "$guard"
fi
if [ ! -e "$cluster" ]; then
    made_cluster=1
    mkdir -p "${cluster%/*}"
    echo "create_main_cluster = false" > "$cluster"
fi
# The lab starts the daemons of these packages itself, and of prometheus it uses only promtool. A masked service does
# not start at the next boot either. A package that was there before is not given, so its service stays.
for name; do
    unit=/etc/systemd/system/$name.service
    case $name in
        prometheus|snmpd|ser2net|conserver-server|openipmi)
            if [ ! -e "$unit" ]; then
                mkdir -p "${unit%/*}"
                ln -s /dev/null "$unit"
            fi ;;
    esac
done
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
'

install_packages() {
    say "these Debian packages are missing:"
    echo "$@" | fold -s -w 96 | sed 's/^/    /'
    if [ "$(id -u)" = 0 ]; then
        become=
    elif command -v sudo >/dev/null; then
        become=sudo
    else
        die "install them as root, then run this again: apt-get install --no-install-recommends $*"
    fi
    if [ -t 0 ] && [ -z "${CI:-}" ]; then
        printf 'setup: install them now%s? [Y/n] ' "${become:+ with sudo}"
        read -r answer
        case $answer in
            ''|[Yy]*) ;;
            *) die "nothing installed" ;;
        esac
    fi
    $become sh -c "$install_script" wqlab-setup "$@" > "$setup_log" 2>&1 || {
        tail -n 15 "$setup_log" >&2
        die "apt could not install them; the whole log is $setup_log"
    }
}

make_user() {
    if ! id -u "$lab_user" >/dev/null 2>&1; then
        say "adding the system user $lab_user (nothing of the lab runs as root)"
        useradd --system --home-dir /var/lib/wqlab --create-home --shell /usr/sbin/nologin "$lab_user"
    fi
    # Subordinate ids for its user namespaces: the first range that no user has.
    if ! grep -q "^$lab_user:" /etc/subuid 2>/dev/null; then
        first=$(cat /etc/subuid /etc/subgid 2>/dev/null | awk -F: 'BEGIN { next_ = 100000 } { if ($2 + $3 > next_) next_ = $2 + $3 } END { print next_ }')
        usermod --add-subuids "$first-$((first + 65535))" --add-subgids "$first-$((first + 65535))" "$lab_user"
    fi
    install -d -o "$lab_user" -m 755 "$(getent passwd "$lab_user" | cut -d: -f6)" "$WQLAB_CACHE" "$WQLAB_STATE"
}

# pip installs the pinned and hashed uv, which installs everything else with checked hashes.
make_python() {
    stamp=$(cat requirements.txt lab/uv.txt ./*/pyproject.toml | sha256sum | cut -c1-16)
    [ "$(cat .venv/wqlab-stamp 2>/dev/null)" = "$stamp" ] && return
    say "installing the Python environment (.venv)"
    rm -rf .venv
    /usr/bin/python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r lab/uv.txt
    uv=".venv/bin/uv -q pip"
    $uv install --python .venv/bin/python --compile-bytecode --require-hashes -r requirements.txt
    # The packages are installed editable, so that changes take effect at once.
    $uv install --python .venv/bin/python --no-deps --no-build-isolation --offline \
        -e contracts -e comparison -e report -e server -e worker -e client -e lab -e rehearsal
    echo "$stamp" > .venv/wqlab-stamp
}

setup_log=$(mktemp "${TMPDIR:-/tmp}/wqlab-setup.XXXXXX")
trap 'rm -f "$setup_log"' EXIT
packages=$(missing_packages)
# shellcheck disable=SC2086  # a list of names
[ -z "$packages" ] || install_packages $packages
packages=$(missing_packages)
[ -z "$packages" ] || die "still missing after the installation: $(echo "$packages" | xargs)"
if [ "$(id -u)" = 0 ]; then
    make_user
else
    mkdir -p "$WQLAB_CACHE" "$WQLAB_STATE"
fi
make_python
# The lab's user cannot write compiled modules into the checkout, and would compile them at each start of a program.
.venv/bin/python -m compileall -q -j 0 ./*/wqlab_*
[ -n "$pages" ] || exit 0
# The lab's user builds pages and documentation in its cache, once per content.
lab/as-user.sh python -m wqlab_lab.web build >/dev/null
lab/as-user.sh python -m wqlab_lab.documentation build >/dev/null
