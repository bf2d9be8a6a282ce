#!/bin/sh
# certificates.sh NAME FOLDER: create a private CA and a certificate for NAME (a host name or an address) in FOLDER, for
# WQLAB_TLS. An existing CA is kept, so that labs which trust it accept the new certificate.
set -eu
[ $# = 2 ] || { echo "usage: $0 NAME FOLDER" >&2; exit 2; }
case $1 in
    *[!0-9.]*) name=DNS:$1 ;;
    *) name=IP:$1 ;;
esac
case $1 in *:*) name=IP:$1 ;; esac
mkdir -p "$2"
cd "$2"
umask 077
new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "$@"; }
quiet=$(mktemp)
trap 'rm -f "$quiet" server.csr names' EXIT
{
    [ -e ca.key ] || new -x509 -days 3650 -subj "/CN=wqlab CA" -keyout ca.key -out ca.crt
    new -subj "/CN=wqlab" -keyout server.key -out server.csr
    echo "subjectAltName=$name" > names
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile names -out server.crt
} 2> "$quiet" || { cat "$quiet" >&2; exit 1; }
