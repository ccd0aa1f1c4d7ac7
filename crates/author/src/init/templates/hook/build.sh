#!/bin/sh
# Builds hook.wasm, and hook.wasm.gz for a ConfigMap, which has room for 1 MiB.
set -eu
cd "$(dirname "$0")"
GOOS=wasip1 GOARCH=wasm GOFLAGS= GOWORK=off go build -trimpath -ldflags '-s -w' -o hook.wasm .
gzip -9 -n -c hook.wasm > hook.wasm.gz
