#!/usr/bin/env bash
# Builds DPDK's own l3fwd, the peer of `linerate forward l3` in benchmarks, from the source package of the DPDK that is
# installed, and prints the path of the program. Built once per version; nothing of the system is changed. Beside it lies
# PATH-static: linked statically, as Linerate is, with the drivers that the benchmarks need.
#   scripts/l3fwd.sh [OUT]     OUT: where to, instead of ${XDG_CACHE_HOME:-~/.cache}/linerate/l3fwd-VERSION
set -euo pipefail

say() { echo "l3fwd: $*" >&2; }
die() { say "$*"; exit 4; }

for tool in apt-get dpkg-query pkg-config cc make tar; do
    command -v "$tool" >/dev/null || die "$tool is not on PATH; on Debian: scripts/setup.sh --test"
done
pkg-config --exists libdpdk || die "libdpdk is not installed; get it with: scripts/setup.sh --build"
# Binary package, source package, version: libdpdk-dev may be of another source version than a newer one in the archive.
version=$(dpkg-query -W -f='${source:Version}' libdpdk-dev) || die "libdpdk-dev is not a Debian package here"

out=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/linerate/l3fwd-$version}
if [ -x "$out-static" ] && [ -x "$out" ] && [ -n "$(ldd "$out" 2>/dev/null)" ] && ! ldd "$out" | grep -q 'not found'; then
    echo "$out"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The system's lists may have no source packages in them: lists of our own, beside the system's, with its own keys.
. /etc/os-release
key=/usr/share/keyrings/debian-archive-keyring.gpg
[ "${ID:-}" = debian ] && [ -r "$key" ] || die "only Debian's archive is known here; build examples/l3fwd of DPDK $version yourself and give its path in L3FWD"
{
    for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-updates"; do
        echo "deb-src [signed-by=$key] http://deb.debian.org/debian $suite main"
    done
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian-security $VERSION_CODENAME-security main"
} >sources.list
mkdir -p lists/partial cache/archives/partial
cat >apt.conf <<EOF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "$(id -un)";
EOF
export APT_CONFIG=$work/apt.conf

say "fetching the source package dpdk $version"
if ! { apt-get update -qq && apt-get source -qq --only-source --download-only "dpdk=$version"; } </dev/null >log 2>&1; then
    tail -n 5 log >&2
    die "DPDK $version could not be fetched (above)"
fi
# apt has checked the files' sums against the signed list.
mkdir source
tar -xf dpdk_*.orig.tar.* -C source --strip-components=1 --wildcards '*/examples/l3fwd/*' '*/examples/common/*'

say "building"
# Two changes, neither on its packet path. It asks for receive checksum offload, which software ports have not got and
# which it does not use; and 8192 mbufs are too few for a pool that also holds an endless capture of many flows: at least
# as many as L3FWD_MBUFS says.
main=source/examples/l3fwd/main.c
sed -i -e 's/\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM/.offloads = 0/' \
    -e 's/(unsigned)8192)/(unsigned)(getenv("L3FWD_MBUFS") ? atoi(getenv("L3FWD_MBUFS")) : 8192))/' "$main"
grep -q '\.offloads = 0' "$main" && grep -q L3FWD_MBUFS "$main" || die "main.c of DPDK $version is not as expected"
# Of the drivers only those for the ports of the benchmarks: some others need libraries that libdpdk-dev does not bring.
classes='(baseband|crypto|compress|event|raw|regex|vdpa|gpu|dma|net|common|bus|mempool)_'
needed='(net_null|net_pcap|bus_vdev|bus_pci|mempool_ring)\.a$'
archives=$(pkg-config --static --libs libdpdk | tr ' ' '\n' | grep '^-l:librte_' | sort -u)
archives=$(grep -vE "rte_$classes" <<<"$archives"; grep -E "rte_$needed" <<<"$archives")
archives="-Wl,--whole-archive $(tr '\n' ' ' <<<"$archives") -Wl,--no-whole-archive"
libraries='-lpcap -lnuma -lelf -lfdt -lbsd -ljansson -lz -lcrypto -latomic -lm -ldl -lpthread'
if ! make -C source/examples/l3fwd shared >log 2>&1 ||
    ! make -C source/examples/l3fwd static LDFLAGS_STATIC="$archives $libraries" LDFLAGS=-no-pie >log 2>&1; then
    tail -n 20 log >&2
    die "the build failed (above)"
fi
mkdir -p "$(dirname "$out")"
for kind in static shared; do
    install -m 755 "source/examples/l3fwd/build/l3fwd-$kind" "$out.$$"
    case $kind in static) mv "$out.$$" "$out-static" ;; shared) mv "$out.$$" "$out" ;; esac
done
echo "$out"
