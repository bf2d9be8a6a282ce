#!/bin/sh
# Run once in LAVA's root: create the database with everything that does not depend on LAVA's addresses.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
bin=$(echo /usr/lib/postgresql/*/bin)
chown postgres /run/postgresql
mkdir -p /srv/postgres
chown postgres /srv/postgres
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
as_postgres "$bin/initdb" -D /srv/postgres -A trust --locale C.UTF-8 -E UTF8 --no-sync
# Durability is not needed here, and costs seconds.
cat >> /srv/postgres/postgresql.conf <<Y
listen_addresses = ''
unix_socket_directories = '/run/postgresql'
fsync = off
synchronous_commit = off
full_page_writes = off
Y
cat > /etc/lava-server/settings.d/00-database.yaml <<Y
DATABASES:
  default:
    ENGINE: django.db.backends.postgresql
    NAME: lavaserver
    USER: lavaserver
    HOST: /run/postgresql
Y
as_postgres "$bin/pg_ctl" -w -D /srv/postgres -l /srv/postgres/log start
as_postgres createuser lavaserver
as_postgres createdb -O lavaserver -T template0 -E UTF8 lavaserver
lava-server manage migrate --noinput
lava-server manage drop_materialized_views
lava-server manage refresh_queries --all
lava-server manage device-types add qemu
as_postgres "$bin/pg_ctl" -w -D /srv/postgres stop
# Remove the lock file of the stopped server, which would prevent a start elsewhere.
rm -f /srv/postgres/postmaster.pid
