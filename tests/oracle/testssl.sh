#!/usr/bin/env bash
# Runs testssl.sh (https://testssl.sh) against firstbyte's default TLS settings; anything above "informational" fails.
#
#   tests/oracle/testssl.sh
#
# testssl.sh is the program TESTSSL, else `testssl` or `testssl.sh` in PATH; without it the script reports a skipped
# check and exits with 0. The binary is FIRSTBYTE_BIN, else target/release/firstbyte. It takes about two minutes.
#
# The certificate is of an authority made here, which testssl.sh is told to trust, and the site sends the headers that a
# careful site sends: what is left to be found is the server's. Passed over, and shown as such:
# - what is about the name "localhost" in the DNS, not about the server;
# - up to version 3.0, that the client's order of cipher suites counts, though all of them are strong: nginx's default,
#   and what Mozilla's configurations say; later versions rate the suites themselves.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/server.bash"
binary=${FIRSTBYTE_BIN:-$here/../../target/release/firstbyte}
testssl=${TESTSSL:-$(command -v testssl || command -v testssl.sh || true)}
for tool in "$testssl" openssl; do
    if ! command -v "${tool:-none}" >/dev/null; then
        echo "skipped: testssl: ${tool:-testssl.sh} is not installed" >&2
        exit 0
    fi
done

scratch=$(mktemp -d)
pid=
finish() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT

certificates() {
    cd "$scratch"
    openssl req -x509 -newkey rsa:4096 -nodes -days 30 -subj '/O=firstbyte/CN=Authority of a test' -keyout root.key -out root.pem \
        -addext keyUsage=critical,keyCertSign,cRLSign
    openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out request.pem
    cat >extensions <<EXT
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth
subjectAltName=DNS:localhost,IP:127.0.0.1
crlDistributionPoints=URI:http://localhost/root.crl
EXT
    openssl x509 -req -in request.pem -CA root.pem -CAkey root.key -CAcreateserial -days 90 -sha256 -extfile extensions -out cert.pem
}

start() {
    local port=$1
    write_conf "server {
        listen 127.0.0.1:$port ssl;
        http2 on;
        server_name localhost;
        root html;
        ssl_certificate cert.pem;
        ssl_certificate_key key.pem;
        add_header Strict-Transport-Security 'max-age=63072000' always;
        add_header X-Content-Type-Options nosniff always;
        add_header X-Frame-Options DENY always;
        add_header Content-Security-Policy \"default-src 'self'\" always;
    }"
    serve "$port"
}

(certificates) 2>/dev/null
port=$(free_port)
start "$port"
timeout 900 "$testssl" --quiet --color 0 --warnings off --nodns none --add-ca "$scratch/root.pem" \
    --jsonfile "$scratch/findings.json" --ip 127.0.0.1 "https://localhost:$port" >"$scratch/report" 2>&1 || true

# Severity, what was looked at, what was found; one line each.
findings=$(sed -nE 's/^ *"(id|severity|finding)" *: *"(.*)",?$/\1 \2/p' "$scratch/findings.json" |
    awk '$1 == "id" { id = $2 } $1 == "severity" { severity = $2 }
         $1 == "finding" { sub(/^finding /, ""); print severity, id ": " $0 }')
count=$(wc -l <<<"$findings")
if [ "$count" -lt 100 ] || ! grep -q '^OK PROTOCOL_NEGOTIATED\|ALPN' <<<"$findings"; then
    tail -n 40 "$scratch/report" >&2
    echo "testssl: it did not come to its end ($count findings)" >&2
    exit 1
fi
known='^LOW DNS_CAArecord:'
version=$("$testssl" --version 2>/dev/null | sed -nE -e 's/\x1b\[[0-9;]*m//g' \
    -e 's/^.*testssl(\.sh)? +(version )?([0-9]+\.[0-9]+[^ ]*).*$/\3/p')
case $version in 3.0*) known="$known|^HIGH cipher_order:" ;; esac
above=$(grep -E '^(LOW|MEDIUM|HIGH|CRITICAL|FATAL) ' <<<"$findings" || true)
passed=$(grep -E "$known" <<<"$above" || true)
unexpected=$(grep -vE "$known" <<<"$above" || true)
grade=$(sed -nE 's/^[A-Z]+ overall_grade: /, grade /p' <<<"$findings")
echo "testssl ${version:-of some version}: $count findings$grade"
[ -z "$passed" ] || sed 's/^/passed over: /' <<<"$passed"
if grep -E '\[(alert|emerg)\]|panick' "$scratch/error.log"; then exit 1; fi
if [ -n "$unexpected" ]; then
    echo "$unexpected"
    exit 1
fi
