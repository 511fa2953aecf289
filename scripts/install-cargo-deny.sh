#!/usr/bin/env bash
# Installs cargo-deny unless it is there. About a minute on two cores: it is built without optimisation, for it runs
# for a second. With Cargo's own cache it is built once per machine.
set -euo pipefail

version=0.20.2
if cargo deny --version 2>/dev/null | grep -qx "cargo-deny $version"; then
    exit 0
fi
echo "cargo-deny: building $version (once per machine, about a minute)"
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
export CARGO_TARGET_DIR="$target" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0
# From the root directory: this workspace's settings are not for it.
cd /
cargo install --quiet --locked cargo-deny --version "$version" </dev/null
