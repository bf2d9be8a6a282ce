#!/bin/sh
# wqlab-init STEP: run a one-time step of `make up`. Each step skips what exists.
set -eu
make_key() { [ -e "$1" ] || ssh-keygen -q -t ed25519 -N "" -C wqlab -f "$1"; }
case ${1-} in
    database) # a PostgreSQL cluster that only its own user reaches, through a socket
        [ -e "$WQLAB_STATE/postgres/PG_VERSION" ] ||
            /usr/lib/postgresql/15/bin/initdb -D "$WQLAB_STATE/postgres" -A peer -E UTF8 --locale=C.UTF-8 --no-instructions
        ;;
    schema) # the database at the newest schema, the workers' token known to it, and the key that signs bundles
        psql -qtA -h /run/postgres -d postgres -c "select 1 from pg_database where datname = 'wqlab'" | grep -q 1 ||
            createdb -h /run/postgres wqlab
        wqlab-server migrate
        wqlab-server token create --name worker --scope worker --secret-file /run/secrets/wqlab_worker_token
        make_key "$WQLAB_SIGNING_KEY_FILE"
        ;;
    lab) # the lab's folders and key, its golden kernel and root filesystem (10 minutes the first time)
        python -m wqlab_lab.prepare
        make_key "$WQLAB_STATE/keys/lab_ed25519"
        ;;
    *)
        echo "wqlab-init: unknown step '${1-}'; the steps are database, schema and lab" >&2
        exit 2
        ;;
esac
