#!/usr/bin/env bash
# Decodes the public HPACK stories, and encodes them again (driver/examples/hpack_stories.rs).
#
#   tests/oracle/hpack.sh DIR
#
# DIR is a checkout of https://github.com/http2jp/hpack-test-case.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${CARGO:-cargo}" run --quiet --release --package firstbyte-driver --example hpack_stories -- "${1:?usage: hpack.sh DIR}"
