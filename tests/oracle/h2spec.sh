#!/usr/bin/env bash
# Runs h2spec (https://github.com/summerwind/h2spec) in strict mode against firstbyte.
#
#   tests/oracle/h2spec.sh [plain | tls ...]
#
# Without arguments both, on a plain port by prior knowledge and over TLS by ALPN. h2spec is the program H2SPEC, else the one
# in PATH; without it the script reports a skipped check and exits with 0. It installs and builds nothing. The binary is
# FIRSTBYTE_BIN, else target/release/firstbyte.
#
# On a plain port one case cannot pass: what is no HTTP/2 preface is HTTP/1 there, and answered with 400, where h2spec
# expects nothing but the end of the connection.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/server.bash"
binary=${FIRSTBYTE_BIN:-$here/../../target/release/firstbyte}
total=146
known_plain='Sends invalid connection preface'
if [ $# -eq 0 ]; then set -- plain tls; fi

scratch=$(mktemp -d)
pid=
finish() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT

h2spec=${H2SPEC:-$(command -v h2spec || true)}
if [ -z "$h2spec" ]; then
    echo 'skipped: h2spec: it is not installed; H2SPEC names the program' >&2
    exit 0
fi

start() {
    local kind=$1 port=$2 ssl=''
    if [ "$kind" = tls ]; then
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
            -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null
        ssl='ssl_certificate cert.pem; ssl_certificate_key key.pem;'
    fi
    write_conf "client_max_body_size 0;
    server { listen 127.0.0.1:$port${ssl:+ ssl}; http2 on; root html; $ssl }"
    head -c 200000 /dev/zero | tr '\0' x >"$scratch/html/large"
    serve "$port"
}

wrong=0
for kind in "$@"; do
    if [ "$kind" = tls ] && ! command -v openssl >/dev/null; then
        echo 'skipped: h2spec over TLS: the openssl command is not installed' >&2
        continue
    fi
    port=$(free_port)
    start "$kind" "$port"
    flags=(--strict -h 127.0.0.1 -p "$port")
    [ "$kind" = plain ] || flags+=(-t -k)
    timeout 300 "$h2spec" "${flags[@]}" >"$scratch/report" 2>&1 || true
    kill "$pid" && wait "$pid" || true
    pid=
    summary=$(tail -n 1 "$scratch/report")
    # Failures are listed again at the end.
    failures=$(sed -n '/^Failures:/,$p' "$scratch/report" | grep -F '×' | sed 's/^ *//' || true)
    unexpected=$failures
    [ "$kind" = tls ] || unexpected=$(grep -vF "$known_plain" <<<"$failures" || true)
    echo "h2spec, $kind: $summary"
    if [ -n "$unexpected" ] || ! grep -q "^$total tests" <<<"$summary"; then
        wrong=1
        sed -n '/^Failures:/,$p' "$scratch/report"
    elif [ "$kind" = plain ] && [ -z "$failures" ]; then
        wrong=1
        echo 'h2spec: the case that could not pass does now: take it out of this script'
    fi
    grep -E 'alert|emerg|panick' "$scratch/error.log" && wrong=1 || true
done
exit "$wrong"
