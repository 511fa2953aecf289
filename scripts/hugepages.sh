#!/usr/bin/env bash
# Makes at least N hugepages of 2 MiB available (default 512 = 1 GiB) and mounts hugetlbfs. Keeps a larger number.
#   sudo scripts/hugepages.sh [N]
set -euo pipefail

want=${1:-512}
case "$want" in
    '' | *[!0-9]*) echo "hugepages: \"$want\" is not a number of pages" >&2; exit 2 ;;
esac
if [ "$(id -u)" -ne 0 ]; then
    echo "hugepages: must be root: sudo $0 $want" >&2
    exit 4
fi

file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
if [ ! -e "$file" ]; then
    echo "hugepages: this kernel has no hugepages of 2 MiB" >&2
    exit 4
fi
have=$(cat "$file")
if [ "$have" -ge "$want" ]; then
    echo "hugepages: $have are there already (asked for $want)"
else
    # Free memory may be in pieces: let the kernel join them before and, if that was not enough, once more.
    for _ in 1 2 3; do
        echo 1 >/proc/sys/vm/compact_memory 2>/dev/null || true
        echo "$want" >"$file"
        [ "$(cat "$file")" -ge "$want" ] && break
    done
    now=$(cat "$file")
    echo "hugepages: $have before, $now now ($((now * 2)) MiB)"
    if [ "$now" -lt "$want" ]; then
        echo "hugepages: the kernel gave $now of $want: free some memory, or reserve them at boot (hugepages=$want)" >&2
        exit 4
    fi
fi

if ! grep -q ' hugetlbfs ' /proc/mounts; then
    mkdir -p /dev/hugepages
    mount -t hugetlbfs nodev /dev/hugepages
    echo "hugepages: mounted hugetlbfs at /dev/hugepages"
fi
