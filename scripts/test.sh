#!/usr/bin/env bash
# Every check and test, stage by stage, with the time each took. Goes on after a failure, so that one run shows all of
# them, and ends with 1 if there was any. Called by `make test`, which has installed what is needed.
#   scripts/test.sh [STAGE...]     only these: fmt house clippy fuzz doc deny unit loom whole
set -uo pipefail
cd "$(dirname "$0")/.."

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
log=$(mktemp)
trap 'rm -f "$log" "$log.now"' EXIT
names=() results=() seconds=()

stage() { # NAME COMMAND...
    local name=$1 start=$SECONDS status=0
    shift
    if [ ${#only[@]} -gt 0 ] && [[ " ${only[*]} " != *" $name "* ]]; then return; fi
    printf '\n==== %s: %s\n' "$name" "$*"
    "$@" </dev/null 2>&1 | tee "$log.now" || status=$?
    # Each failed test with what it said, for a reader who sees the end of the log only.
    awk -v stage="$name" '
        /^---- .* stdout ----$/ { print stage ": " $2 " FAILED"; left = 8; next }
        /^stack backtrace:|^note: / { left = 0 }
        /^error/ && errors < 5 { print stage ": " substr($0, 1, 1000); errors++ }
        left > 0 && NF { print "    " substr($0, 1, 1000); left-- }' "$log.now" >>"$log"
    names+=("$name") seconds+=($((SECONDS - start)))
    if [ $status -eq 0 ]; then results+=(ok); else results+=("FAILED ($status)"); fi
    printf '==== %s: %s after %d s\n' "$name" "${results[-1]}" "${seconds[-1]}"
}

deny() { scripts/install-cargo-deny.sh && cargo deny check bans licenses sources; }

# The fuzz targets compile: they stand outside the workspace. Nothing is linked, so the library need not be built.
fuzz() { CUSTOM_LIBFUZZER_PATH=/dev/null cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz; }

# `house` by itself: it asks for a feature of proc-macro2, with which everything that derives would be built once more.
others=(--workspace --exclude house)

clippy() {
    cargo clippy --locked "${others[@]}" --all-targets --quiet -- -D warnings &&
        cargo clippy --locked -p house --all-targets --quiet -- -D warnings
}

docs() {
    RUSTDOCFLAGS=-Dwarnings cargo doc --locked "${others[@]}" --no-deps --quiet &&
        RUSTDOCFLAGS=-Dwarnings cargo doc --locked -p house --no-deps --quiet
}

loom() {
    # Every order in which threads may see the flow table's atomics: half a minute. The limit is for a model that has grown
    # too large: of processor time, since beside other work the wall clock says nothing; a deadlock ends by the other one.
    cargo test --locked -p flow --lib --features loom --no-run &&
        (ulimit -t 300 && timeout 900 cargo test --locked -p flow --lib --features loom loom)
}

whole() {
    # These bring up real systems under test one after the other: two cores carry one at a time. They need root for
    # namespaces, hugepages and AF_XDP; as an ordinary user only the test programs themselves are run with sudo.
    if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
        local runner
        runner="CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER"
        export "$runner=sudo -E env PATH=$PATH"
    fi
    cargo test --locked --no-fail-fast -p linerate -- --test-threads=1
}

only=("$@")
stage fmt cargo fmt --all --check
stage house cargo test --locked -p house
stage clippy clippy
stage fuzz fuzz
stage doc docs
stage deny deny
stage unit cargo test --locked --no-fail-fast --workspace --exclude linerate --exclude house
stage loom loom
stage whole whole

failed=0
printf '\n%-8s %8s  %s\n' stage seconds result
for i in "${!names[@]}"; do
    printf '%-8s %8d  %s\n' "${names[$i]}" "${seconds[$i]}" "${results[$i]}"
    [ "${results[$i]}" = ok ] || failed=1
done
printf '%-8s %8d\n' total "$SECONDS"
# Once more by name: what they said stands far above.
cat "$log"
if [ ${#names[@]} -eq 0 ]; then
    echo "no such stage: ${only[*]}" >&2
    exit 2
fi
exit $failed
