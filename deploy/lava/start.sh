#!/bin/bash
# wqlab-lava PORT [DEVICE...]: run LAVA on PORT of every address with these QEMU devices; exit when one of its processes ends.
# Its data is in /var/lib/lava. It uses the ports PORT to PORT+3.
#
# It starts as root, which LAVA's dispatcher needs; its web server and database run as other users.
set -eu
port=$1
shift
publisher=$((port + 1)) events=$((port + 2)) overlays=$((port + 3))
api=http://127.0.0.1:$port/api/v0.2
kept=/var/lib/lava/kept
token=/run/secrets/wqlab_lava_token
bin=$(echo /usr/lib/postgresql/*/bin)

[ -s $token ] || { echo "wqlab-lava: no secret in $token: run deploy/secrets.sh" >&2; exit 2; }
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

database() {
    install -d -o root -g root -m 755 $kept
    install -d -o postgres -m 700 $kept/postgres
    install -d -o postgres -m 755 /run/postgresql
    if [ ! -e $kept/postgres/PG_VERSION ]; then
        as_postgres "$bin/initdb" -D $kept/postgres -A peer -E UTF8 --locale=C.UTF-8 --no-instructions
        # LAVA's programs run as root or lavaserver, and use the role lavaserver of the database.
        sed -i '1i local lavaserver lavaserver peer map=lava' $kept/postgres/pg_hba.conf
        printf 'lava root lavaserver\nlava lavaserver lavaserver\n' >> $kept/postgres/pg_ident.conf
    fi
    rm -f $kept/postgres/postmaster.pid
    as_postgres "$bin/postgres" -D $kept/postgres -k /run/postgresql -h '' &
    until as_postgres pg_isready -q -h /run/postgresql; do sleep 0.2; done
    as_postgres psql -h /run/postgresql -Atc "select 1 from pg_roles where rolname = 'lavaserver'" | grep -q 1 || {
        as_postgres createuser -h /run/postgresql lavaserver
        as_postgres createdb -h /run/postgresql -O lavaserver -T template0 -E UTF8 lavaserver
    }
}

settings() {
    cat > /etc/lava-server/settings.d/00-wqlab.yaml <<Y
DATABASES:
  default: {ENGINE: django.db.backends.postgresql, NAME: lavaserver, USER: lavaserver, HOST: /run/postgresql}
EVENT_NOTIFICATION: true
EVENT_SOCKET: "tcp://127.0.0.1:$events"
INTERNAL_EVENT_SOCKET: "ipc:///run/lava.events"
ALLOWED_HOSTS: ["127.0.0.1", "localhost", "lava"]
HTTPS_XML_RPC: false
SESSION_COOKIE_SECURE: false
CSRF_COOKIE_SECURE: false
INSTANCE_NAME: wqlab
Y
    for folder in /etc/lava-server/dispatcher-config /etc/lava-server/dispatcher.d /var/lib/lava-server/default; do
        name=$kept/$(basename $folder)
        [ -d "$name" ] || cp -a $folder "$name" 2>/dev/null || mkdir -p "$name"
        rm -rf $folder
        mkdir -p "$(dirname $folder)"
        ln -s "$name" $folder
    done
    mkdir -p /var/log/lava-server /var/lib/lava/dispatcher/tmp $kept/default/media/job-output \
        $kept/dispatcher-config/devices $kept/dispatcher.d/worker-01
    printf 'dispatcher_ip: 127.0.0.1\ndispatcher_http_ip: 127.0.0.1:%s\n' $overlays > $kept/dispatcher.d/worker-01/dispatcher.yaml
    number=16
    for device in "$@"; do
        printf "{%% extends 'qemu.jinja2' %%}\n{%% set no_kvm = True %%}\n{%% set mac_addr = '52:54:00:12:34:%x' %%}\n" \
            $((number += 1)) > "$kept/dispatcher-config/devices/$device.jinja2"
    done
    chown -R lavaserver:lavaserver $kept/default $kept/dispatcher-config $kept/dispatcher.d /var/log/lava-server \
        /etc/lava-server/settings.d
}

rows() {
    lava-server manage migrate --noinput > /dev/null
    lava-server manage refresh_queries --all > /dev/null
    if [ ! -e $kept/made ]; then
        password=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')
        lava-server manage users add wqlab --superuser --staff --passwd "$password" --email wqlab@localhost.localdomain
        lava-server manage tokens add --user wqlab --secret "$(cat $token)" --description wqlab > /dev/null
        lava-server manage device-types add qemu
        lava-server manage workers add worker-01 > /dev/null
        touch $kept/made
    fi
    for device in "$@"; do
        lava-server manage devices details "$device" > /dev/null 2>&1 || {
            lava-server manage devices add --device-type qemu --worker worker-01 "$device"
            lava-server manage devices update --health GOOD "$device"
        }
    done
}

database
settings "$@"
rows "$@"
worker_token=$(as_postgres psql -h /run/postgresql -Atc \
    "select token from lava_scheduler_app_worker where hostname = 'worker-01'" lavaserver)
gunicorn3 lava_server.wsgi --log-level WARNING -u lavaserver -g lavaserver --worker-class gthread --workers 1 --threads 8 \
    --bind "0.0.0.0:$port" &
lava-server manage lava-publisher --level WARN --log-file - --host 127.0.0.1 --port $publisher &
lava-server manage lava-scheduler --level WARN --log-file - --event-url "tcp://127.0.0.1:$events" &
until curl -sf "$api/system/version/" > /dev/null; do sleep 0.5; done
lava-worker --level WARN --log-file - --name worker-01 --url "http://127.0.0.1:$port/" \
    --ws-url "http://127.0.0.1:$publisher/ws/" --token "$worker_token" --ping-interval 1 --job-log-interval 1 &
wait -n
echo "wqlab-lava: one of LAVA's processes has ended" >&2
exit 1
