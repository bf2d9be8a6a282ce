#!/bin/sh
# Create the missing secrets of docker-compose.yml, store their folder in .env, which compose reads, and check that this
# machine can run the containers.
# To replace a secret, remove its file and run this again, then `docker compose up --detach`.
set -eu
cd "$(dirname "$0")/.."
folder=${WQLAB_SECRETS:-./deploy/secrets}

# Containers run as another user and see a file's owner and mode on this machine, so the files must be readable. The
# folder keeps this machine's other users from them.
install -d -m 700 "$folder"
chmod 700 "$folder"
random() { od -An -vtx1 -N32 /dev/urandom | tr -d ' \n'; }
secret() {
    if [ -s "$folder/$1" ]; then
        echo "$folder/$1 exists"
        return
    fi
    (umask 022 && printf '%s\n' "$2" > "$folder/$1")
    echo "$folder/$1 created"
}
secret wqlab_worker_token "wql_$(random)"
secret wqlab_lava_token "$(random)"
grep -qs '^WQLAB_SECRETS=' .env || echo "WQLAB_SECRETS=$folder" >> .env

exec deploy/check.sh
