#!/bin/sh
# Check that this machine can run the containers of docker-compose.yml; if not, say what to do. It changes nothing.
set -eu
cd "$(dirname "$0")/.."
die() { printf 'deploy/check.sh: %s\n' "$*" >&2; exit 1; }

# The value of a variable as compose sees it: from the environment, or else from .env.
setting() {
    eval "value=\${$1-}"
    [ -n "$value" ] || value=$(sed -n "s/^$1=//p" .env 2>/dev/null | tail -n 1)
    printf '%s' "${value:-$2}"
}

command -v docker >/dev/null ||
    die "there is no program docker: install Docker Engine 25 or newer with its compose plugin (https://docs.docker.com/engine/install/)"
version=$(docker version --format '{{.Server.Version}}' 2>&1) ||
    die "the Docker Engine does not answer: start it (systemctl start docker), or add your user to the group docker. It said: $version"
case $version in
    [0-9]*) [ "${version%%.*}" -ge 25 ] || die "Docker Engine $version is too old for these health checks: install 25 or newer" ;;
esac
docker compose version >/dev/null 2>&1 || die "docker has no compose plugin: install docker-compose-plugin"

folder=$(setting WQLAB_SECRETS ./deploy/secrets)
for secret in wqlab_worker_token wqlab_lava_token; do
    [ -s "$folder/$secret" ] || die "there is no secret $folder/$secret: run deploy/secrets.sh"
done

# A lab that runs has its port and its disk space already.
[ -z "$(docker compose ps --quiet api 2>/dev/null)" ] || exit 0
listen=$(setting WQLAB_LISTEN 127.0.0.1:8750)
port=$(printf ':%04X' "${listen##*:}")
if cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$port" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'; then
    die "another program listens on port ${listen##*:}: stop it, or choose another port in .env: WQLAB_LISTEN=127.0.0.1:8751 and WQLAB_PUBLIC_URL=http://127.0.0.1:8751"
fi
data=$(docker info --format '{{.DockerRootDir}}')
needed=15
if free=$(df --output=avail -BG "$data" 2>/dev/null | tr -dc '0-9'); then
    [ "$free" -ge "$needed" ] ||
        die "$data has $free GB free, images and kernels need $needed: docker system prune, or move the engine's data-root"
fi
