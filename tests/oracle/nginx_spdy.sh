#!/usr/bin/env bash
# Builds nginx 1.7.7 and 1.7.8 with SPDY, and holds the doctor to both: 1.7.7 keeps the ends of compressed responses until
# they are acknowledged, 1.7.8 does not.
#
#   tests/oracle/nginx_spdy.sh CLONE DIR
#
# CLONE is a clone of https://github.com/nginx/nginx with its tags, and is read alone. DIR, outside of this repository, gets
# sources, binaries and reports; what is built there is not built again. The doctor is FIRSTBYTE_BIN, else
# target/release/firstbyte. Needs a C compiler, OpenSSL 3 and zlib with their headers, the command openssl, and root for the
# emulated link.
#
# Sources of 2014 do not compile with OpenSSL 3 and glibc 2.28; `edit` has what is changed. Nothing of it is on the path of a
# response.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
clone=${1:?usage: nginx_spdy.sh CLONE DIR}
mkdir -p "${2:?usage: nginx_spdy.sh CLONE DIR}"
dir=$(cd "$2" && pwd)
binary=${FIRSTBYTE_BIN:-$here/../../target/release/firstbyte}

edit() {
    local ssl=src/event/ngx_event_openssl.c
    # 1. glibc: `struct crypt_data` has no `current_salt` any more, which worked around a fault of an older one.
    sed -i '/cd\.current_salt\[0\]/d' src/os/unix/ngx_user.c
    # 2. OpenSSL 1.1: structures are opaque. Parameters of Diffie-Hellman are set by a call, certificates are counted by one,
    #    a digest's context is made by one, and renegotiation is refused by an option.
    sed -i -e 's/dh->p = BN_bin2bn/BIGNUM *p = BN_bin2bn/' -e 's/dh->g = BN_bin2bn/BIGNUM *g = BN_bin2bn/' \
        -e 's/dh->p == NULL || dh->g == NULL/!DH_set0_pqg(dh, p, NULL, g)/' \
        -e 's/EVP_MD_CTX            md;/EVP_MD_CTX           *md = EVP_MD_CTX_new();/' \
        -e '/EVP_MD_CTX_init(&md);/d' -e 's/EVP_MD_CTX_cleanup(&md)/EVP_MD_CTX_free(md)/' -e 's/(&md, /(md, /' \
        -e 's/if (c->ssl->connection->s3) {/{/' \
        -e 's/c->ssl->connection->s3->flags |= .*/SSL_set_options(c->ssl->connection, SSL_OP_NO_RENEGOTIATION);/' "$ssl"
    sed -i 's/CRYPTO_add(&issuer->references, 1, CRYPTO_LOCK_X509)/X509_up_ref(issuer)/' \
        src/event/ngx_event_openssl_stapling.c
    # 3. OpenSSL 1.1 has no such error.
    sed -i '/SSL_R_NO_CIPHERS_PASSED/d' "$ssl"
    # 4. TLS 1.3 did not exist: its tickets, which come after the handshake, are a renegotiation to nginx, which then closes.
    sed -i 's/SSLv23_method()/TLSv1_2_method()/' "$ssl"
}

build() {
    local version=$1
    [ ! -x "$dir/$version/nginx" ] || return 0
    echo "building nginx $version"
    rm -rf "$dir/source-$version"
    mkdir -p "$dir/source-$version" "$dir/$version"
    git -C "$clone" archive "release-$version" | tar -x -C "$dir/source-$version"
    (
        cd "$dir/source-$version"
        edit
        # Warnings of today's compilers are not errors of yesterday's code; PCRE 1 may not be there, and nothing here rewrites.
        nice ./auto/configure --prefix="$dir/$version" --with-http_ssl_module --with-http_spdy_module \
            --without-http_rewrite_module --with-cc-opt='-O1 -w' && nice make
    ) > "$dir/build-$version.log" 2>&1 || { tail -n 20 "$dir/build-$version.log"; return 1; }
    cp "$dir/source-$version/objs/nginx" "$dir/$version/nginx"
}

build 1.7.7
build 1.7.8

run=$(mktemp -d)
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
    local version=$1 port=$2
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
    "$dir/$version/nginx" -p "$run/$version" -c "$run/$version/nginx.conf" &
    pids+=($!)
    for _ in $(seq 100); do
        (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        sleep 0.1
    done
    cat "$run/$version/error.log"
    return 1
}

# The doctor's findings go to DIR/VERSION.json, its report to the terminal; its status is checked.
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

# Bodies of these sizes are visited behind a link that holds acknowledgements; the captures are judged.
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
