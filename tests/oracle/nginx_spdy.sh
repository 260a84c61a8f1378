#!/usr/bin/env bash
# Runs the doctor against nginx 1.7.7 and 1.7.8 with SPDY. nginx 1.7.7 holds the ends of compressed responses until their
# acknowledgement; 1.7.8 does not.
#
#   NGINX_177=PATH NGINX_178=PATH tests/oracle/nginx_spdy.sh [REPORTS]
#
# NGINX_177 and NGINX_178 are the two binaries (docs/doctor.md describes them). The script builds nothing. REPORTS is a folder
# for reports and captures; without it they are removed at the end. The doctor is FIRSTBYTE_BIN, else
# target/release/firstbyte. Needs the openssl command, and root for the emulated link.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
binary=${FIRSTBYTE_BIN:-$here/../../target/release/firstbyte}
for name in NGINX_177 NGINX_178; do
    if [ -z "${!name:-}" ]; then
        echo "skipped: nginx_spdy: $name does not name a binary of nginx" >&2
        exit 0
    fi
    version=1.7.${name: -1}
    if ! "${!name}" -v 2>&1 | grep -qF "nginx/$version"; then
        echo "nginx_spdy: ${!name} is not nginx $version" >&2
        exit 1
    fi
done

run=$(mktemp -d)
dir=${1:-$run/reports}
mkdir -p "$dir"
pids=()
finish() {
    for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$run"
}
trap finish EXIT
mkdir -p "$run/site"
chmod -R 755 "$run"
head -c 1000 /dev/urandom > "$run/site/index.html"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$run/key.pem" -out "$run/cert.pem" -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost 2> "$run/openssl.log"

serve() {
    local version=$1 port=$2 nginx=NGINX_${1//./}
    mkdir -p "$run/$version/logs"
    cat > "$run/$version/nginx.conf" <<CONF
worker_processes 1;
error_log $run/$version/error.log;
pid $run/$version/pid;
daemon off;
events { worker_connections 256; }
http {
    types { text/html html; }
    access_log off;
    gzip on;
    server {
        listen 127.0.0.1:$port ssl spdy;
        ssl_certificate $run/cert.pem;
        ssl_certificate_key $run/key.pem;
        root $run/site;
    }
}
CONF
    "${!nginx}" -p "$run/$version" -c "$run/$version/nginx.conf" &
    pids+=($!)
    for _ in $(seq 100); do
        (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        sleep 0.1
    done
    cat "$run/$version/error.log"
    return 1
}

# Writes the doctor's findings to REPORTS/VERSION.json and checks them and the exit status.
examine() {
    local version=$1 port=$2 expected=$3 status=0
    serve "$version" "$port"
    echo "== nginx $version"
    "$binary" doctor "https://localhost:$port/" -k --protocol spdy --docroot "$run/site" \
        --max-requests "${ORACLE_REQUESTS:-2000}" --json > "$dir/$version.json" || status=$?
    python3 - "$dir/$version.json" "$expected" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
stall = [one for one in found["findings"] if one["code"] == "delayed-ack-stall"]
print(found["conditions"]["network"])
for one in found["findings"]:
    print(one["severity"], one["code"], one["title"])
for one in stall:
    print(json.dumps({k: v for k, v in one["evidence"].items() if k != "cells"}))
if "emulated" not in found["conditions"]["network"]:
    sys.exit("there was no link")
if len(stall) != int(sys.argv[2]):
    sys.exit(f"{len(stall)} findings of delayed-ack-stall, {sys.argv[2]} expected")
PY
    [ "$expected" = 0 ] || [ "$status" = 2 ] || { echo "status $status"; return 1; }
}

# Captures bodies of these sizes behind a link that holds acknowledgements, and runs the doctor on each capture.
capture() {
    local version=$1 port=$2 expected=$3 size file
    for size in 100 612 1000 1200 1500 1602 2300; do
        head -c "$size" /dev/urandom > "$run/site/$size.html"
        file=$dir/$version-$size.pcap
        "$binary" waterfall --wire --protocol spdy -k --via 50ms,delack=200ms --pcap "$file" \
            "https://localhost:$port/$size.html" > "$run/waterfall.txt"
        "$binary" doctor --pcap "$file" --keylog "$file.keys" --json > "$run/capture.json" || true
        python3 - "$run/capture.json" "$size" "$expected" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))["findings"]
stall = [one for one in found if one["code"] == "delayed-ack-stall"]
print(f"captured, {sys.argv[2]} bytes:", stall[0]["title"] if stall else "no stall")
if len(stall) != int(sys.argv[3]):
    sys.exit(f"{len(stall)} findings of delayed-ack-stall in the capture, {sys.argv[3]} expected")
PY
    done
}

examine 1.7.7 "${ORACLE_PORT:-18077}" 1
capture 1.7.7 "${ORACLE_PORT:-18077}" 1
examine 1.7.8 "$((${ORACLE_PORT:-18077} + 1))" 0
capture 1.7.8 "$((${ORACLE_PORT:-18077} + 1))" 0
echo "both are as they should be"
