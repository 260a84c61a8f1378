#!/usr/bin/env bash
# Runs nginx's own test suite against firstbyte and holds the outcome against known.txt.
#
#   tests/oracle/run.sh DIR [FILE.t ...]
#
# DIR is a checkout of https://github.com/nginx/nginx-tests; without names, every .t file in it
# is run. The binary is FIRSTBYTE_BIN, else target/release/firstbyte. The exit code is 0 when
# exactly the files of known.txt fail (or are skipped), 1 otherwise: a file that passes must leave
# the list, a file that fails must not join it unnoticed.
#
# The suite expects the reload of nginx: reload_connections drain.
#
# As root, the tests run as nobody and, where unshare and ip are there, each in a network
# namespace that holds nothing but loopback.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: run.sh DIR [FILE.t ...]}
shift
dir=$(cd "$dir" && pwd)
binary=${FIRSTBYTE_BIN:-$here/../../target/release/firstbyte}
limit_s=${ORACLE_TIMEOUT_S:-60}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
# A copy: the user the tests run as need not be able to enter this tree.
cp -f "$binary" "$scratch/nginx"
chmod 755 "$scratch/nginx"

if [ $# -gt 0 ]; then files=("$@"); else files=(); for f in "$dir"/*.t; do files+=("${f##*/}"); done; fi

as_nobody=()
isolate=0
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    as_nobody=(setpriv "--reuid=$(id -u nobody)" "--regid=$(id -g nobody)" --clear-groups)
    command -v unshare >/dev/null && command -v ip >/dev/null && unshare --net true 2>/dev/null && isolate=1
fi

# One file: 0 passed, 1 failed, 2 skipped as a whole.
run_one() {
    local file=$1 out=$scratch/out.$1 tmp=$scratch/tmp.$1 code=0
    local command=(timeout -k 5 "$limit_s" perl "$file")
    mkdir -m 777 "$tmp"
    [ ${#as_nobody[@]} -eq 0 ] || command=("${as_nobody[@]}" "${command[@]}")
    [ "$isolate" -eq 0 ] || command=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh "${command[@]}")
    (cd "$dir" && exec env TEST_NGINX_BINARY="$scratch/nginx" TEST_NGINX_GLOBALS="reload_connections drain;" TMPDIR="$tmp" HOME="$tmp" LC_ALL=C "${command[@]}") \
        >"$out" 2>&1 </dev/null || code=$?
    rm -rf "$tmp"
    if grep -qiE '^1\.\.0[[:space:]]*#[[:space:]]*skip' "$out"; then return 2; fi
    [ "$code" -eq 0 ] && grep -qE '^1\.\.[1-9]' "$out" && ! grep -E '^not ok' "$out" | grep -qviE '# *todo'
}

reason_of() {
    awk -v file="$1" '$1 == file { sub(/^[^ \t]+[ \t]+/, ""); print; exit }' "$here/known.txt"
}

passed=0 known=0 wrong=0
for file in "${files[@]}"; do
    verdict=0
    run_one "$file" || verdict=$?
    reason=$(reason_of "$file")
    case "$verdict:${reason:+listed}:${reason%%:*}" in
        0::*) passed=$((passed + 1)) ;;
        0:listed:env) passed=$((passed + 1)) ;;
        0:listed:*) wrong=$((wrong + 1)); echo "passes now, take it off known.txt: $file  ($reason)" ;;
        *:listed:*) known=$((known + 1)) ;;
        2::*) wrong=$((wrong + 1)); echo "skipped, and not in known.txt: $file: $(head -n 1 "$scratch/out.$file")" ;;
        *) wrong=$((wrong + 1)); echo "fails, and is not in known.txt: $file"; grep -E '^not ok' "$scratch/out.$file" | head -n 8 || true ;;
    esac
done
echo "oracle: ${#files[@]} files: $passed pass, $known known not to, $wrong wrong"
[ "$wrong" -eq 0 ]
