#!/bin/sh
# Makes the secrets of docker-compose.yml that are not there yet, and notes their folder in .env, where compose reads it.
# To replace one, remove its file and run this again, then `docker compose up --detach`.
set -eu
cd "$(dirname "$0")/.."
folder=${WQLAB_SECRETS:-./deploy/secrets}

# Containers see a file with the owner and mode that it has here, and run as a user of their own: the files can be read,
# the folder is what keeps this machine's other users away from them.
install -d -m 700 "$folder"
chmod 700 "$folder"
random() { od -An -vtx1 -N32 /dev/urandom | tr -d ' \n'; }
secret() {
    if [ -s "$folder/$1" ]; then
        echo "$folder/$1 is there"
        return
    fi
    (umask 022 && printf '%s\n' "$2" > "$folder/$1")
    echo "$folder/$1 made"
}
secret wqlab_worker_token "wql_$(random)"
secret wqlab_lava_token "$(random)"
grep -qs '^WQLAB_SECRETS=' .env || echo "WQLAB_SECRETS=$folder" >> .env
