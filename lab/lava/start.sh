#!/bin/bash
# start.sh PORT, in LAVA's root: start all of LAVA's processes and run until one of them ends. /state is the caller's
# folder. It contains `devices`, a QEMU device's name on each line, and receives `token` (of the user wqlab),
# `other-token` (of another user), `ready` and logs.
set -eu
port=$1
publisher=$((port + 1)) events=$((port + 2)) overlays=$((port + 3))
bin=$(echo /usr/lib/postgresql/*/bin)
log=/state/log
mkdir -p $log
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }

cat > /etc/lava-server/settings.d/10-listen.yaml <<Y
EVENT_NOTIFICATION: true
EVENT_SOCKET: "tcp://127.0.0.1:$events"
INTERNAL_EVENT_SOCKET: "ipc:///run/lava.events"
ALLOWED_HOSTS: ["*"]
HTTPS_XML_RPC: false
SESSION_COOKIE_SECURE: false
CSRF_COOKIE_SECURE: false
INSTANCE_NAME: wqlab
Y
chown postgres /run/postgresql
rm -f /srv/postgres/postmaster.pid
as_postgres "$bin/pg_ctl" -w -D /srv/postgres -l /srv/postgres/log start >/dev/null
if [ ! -e /state/token ]; then
	devices=/etc/lava-server/dispatcher-config/devices
	mkdir -p $devices /etc/lava-server/dispatcher.d/worker-01
	printf 'dispatcher_ip: 127.0.0.1\ndispatcher_http_ip: 127.0.0.1:%s\n' $overlays >/etc/lava-server/dispatcher.d/worker-01/dispatcher.yaml
	while read -r name; do
		printf "{%% extends 'qemu.jinja2' %%}\n{%% set no_kvm = True %%}\n" >$devices/"$name".jinja2
	done </state/devices
	chown -R lavaserver:lavaserver /etc/lava-server
	# One process does everything, because each start of lava-server takes seconds.
	lava-server manage shell >/dev/null </register.shell
fi
mkdir -p /var/log/lava-server /var/lib/lava-server/default/media/job-output /var/lib/lava/dispatcher/tmp
chown -R lavaserver:lavaserver /var/log/lava-server /var/lib/lava-server/default /etc/lava-server/settings.d
worker_token=$(as_postgres psql -h /run/postgresql -Atc \
	"select token from lava_scheduler_app_worker where hostname = 'worker-01'" lavaserver)

gunicorn3 lava_server.wsgi --log-level INFO --log-file $log/gunicorn.log -u lavaserver -g lavaserver \
	--worker-class gthread --workers 1 --threads 8 --bind 127.0.0.1:"$port" >$log/gunicorn.out 2>&1 &
lava-server manage lava-publisher --level INFO --log-file /var/log/lava-server/lava-publisher.log --host 127.0.0.1 --port $publisher \
	>$log/publisher.out 2>&1 &
lava-server manage lava-scheduler --level INFO --log-file /var/log/lava-server/lava-scheduler.log \
	--event-url tcp://127.0.0.1:$events >$log/scheduler.out 2>&1 &
api=http://127.0.0.1:$port/api/v0.2
until_answered() { # PATTERN URL: wait for an answer that matches; exit if a started process has ended
	until curl -s "$2" | grep -q "$1"; do
		[ "$(jobs -pr | wc -l)" = "$(jobs -p | wc -l)" ] || {
			tail -n 5 $log/*.out >&2
			exit 1
		}
		sleep 0.2
	done
}
until_answered version "$api/system/version/"
# With the default intervals a job of seconds takes half a minute.
lava-worker --level INFO --log-file $log/worker.log --name worker-01 --url http://127.0.0.1:"$port"/ \
	--ws-url http://127.0.0.1:$publisher/ws/ --token "$worker_token" --ping-interval 1 --job-log-interval 1 >$log/worker.out 2>&1 &
until_answered Online "$api/workers/worker-01/"
touch /state/ready
wait -n
echo "one of LAVA's processes has ended: see its log" >&2
exit 1
