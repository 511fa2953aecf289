#!/usr/bin/env bash
# Fuzzes what reads frames and files with libFuzzer, each target for a while. Needs cargo-fuzz (cargo install cargo-fuzz); with the
# usual compiler, which is told to allow what cargo-fuzz asks of a nightly one. Not part of `make test`. A finding ends it: the input is in fuzz/artifacts/TARGET/.
#   scripts/fuzz.sh [SECONDS] [TARGET...]     60 seconds and all targets (captures, decode, frames, ipfix, messages, request, scrape, text) unless told
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-60}
case "$seconds" in
    '' | *[!0-9]*) echo "fuzz: \"$seconds\" is not a number of seconds" >&2; exit 2 ;;
esac
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: needs cargo-fuzz: cargo install cargo-fuzz" >&2
    exit 4
fi
export RUSTC_BOOTSTRAP=1
shift || true
for target in "${@:-captures decode frames ipfix messages request scrape text}"; do
    for name in $target; do
        mkdir -p "fuzz/corpus/$name" "fuzz/seeds/$name"
        # The crates fuzzed are free of unsafe code: the address sanitizer would find nothing, at half the speed.
        cargo fuzz run --sanitizer none "$name" "fuzz/corpus/$name" "fuzz/seeds/$name" -- \
            -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
    done
done
