#!/usr/bin/env bash
# Installs what Linerate needs on Debian 12 (or newer) and is not there yet. Says what; does nothing when all is there.
#   scripts/setup.sh --build    what compiling needs
#   scripts/setup.sh --test     that, and the real systems under test
#   scripts/setup.sh --bench    that, and what the benchmarks count with
set -euo pipefail

build=(libdpdk-dev libclang-dev pkg-config gcc binutils libc6-dev make)
# dropbear-bin: an ssh server of a test's own, in a guest; grub, xorriso, mtools: a disk that boots. util-linux: setpriv; procps: sysctl; coreutils: stdbuf, timeout; libfaketime: a wall clock of one program's own; rt-tests: oslat, cyclictest; ncat: a collector over SCTP.
test=(dpdk-dev openvswitch-switch-dpdk iproute2 ethtool tcpdump util-linux procps coreutils iputils-ping traceroute iperf3
    qemu-system-x86 libvirt-clients libxml2-utils netcat-openbsd nfdump pmacct tshark softflowd python3-scapy dropbear-bin openssh-client grub-pc-bin grub-common xorriso mtools python3-pip libfaketime stress-ng rt-tests sockperf ncat e2fsprogs curl jq)
# valgrind: callgrind counts instructions.
bench=(valgrind)
# Out of packages that are not installed: real traffic, whose package's dependencies are of no use here, and promtool, whose
# package would start a server.
promtool=/var/lib/linerate-tests/bin/promtool
captures=/var/lib/linerate-tests/captures
netflow=/var/lib/linerate-tests/netflow
netflow_version=0.12.2
# The kernel that virtual machines boot: unpacked, so that this machine goes on booting its own.
kernel=/var/lib/linerate/kernel
capture_package=pathspider
capture_files=(real.pcap tcp_ecn.pcap mss_ipv6.pcap tcp_http.pcap)

case "${1:-}" in
    --build) want=("${build[@]}") ;;
    --test) want=("${build[@]}" "${test[@]}") ;;
    --bench) want=("${build[@]}" "${test[@]}" "${bench[@]}") ;;
    *) echo "usage: $0 --build | --test | --bench" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: no apt here. Install these (by Debian's names) yourself: ${want[*]}" >&2
    # What the build needs may be there all the same.
    if command -v pkg-config >/dev/null && pkg-config --exists libdpdk; then exit 0; fi
    exit 4
fi

missing=()
for package in "${want[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is not on PATH. Linerate needs Rust 1.91 or newer (Debian 12's own is older):" >&2
    echo "setup: install it with rustup, then run this again." >&2
    exit 4
fi

no_promtool=
no_netflow=
no_captures=()
no_kernel=
if [ "$1" != --build ]; then
    for file in "${capture_files[@]}"; do
        [ -s "$captures/$file" ] || no_captures+=("$file")
    done
    [ -x "$promtool" ] || no_promtool=yes
    [ -d "$kernel/lib/modules" ] || no_kernel=yes
    [ -d "$netflow/netflow-$netflow_version.dist-info" ] || no_netflow=yes
fi

if [ ${#missing[@]} -eq 0 ] && [ ${#no_captures[@]} -eq 0 ] && [ -z "$no_promtool$no_netflow$no_kernel" ]; then
    echo "setup: all packages are installed"
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: not root and no sudo. As root: scripts/setup.sh $1" >&2
        [ ${#missing[@]} -eq 0 ] || echo "setup: or: apt-get install -y --no-install-recommends ${missing[*]}" >&2
        exit 4
    fi
    echo "setup: (with sudo)"
    as_root=(sudo)
fi

log=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1; }
# The lists may be missing (a fresh image) or old: fetch them, and go on with the old ones if that fails.
apt update -qq || echo "setup: apt-get update failed; trying with the lists that are there"

if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing ${missing[*]}"
    ovs_before=$(pgrep -x 'ovs-vswitchd|ovsdb-server' 2>/dev/null | wc -l || true)
    if ! apt install -y --no-install-recommends "${missing[@]}"; then
        tail -n 20 "$log" >&2
        echo "setup: apt-get install failed (above). The command was: apt-get install -y --no-install-recommends ${missing[*]}" >&2
        exit 4
    fi
    echo "setup: installed"

    case " ${missing[*]} " in
        *" softflowd "* | *" nfdump "* | *" pmacct "*)
            echo "setup: Debian may start a softflowd, an nfcapd and daemons of pmacct of its own where systemd runs. Linerate does"
            echo "setup: not use them; its tests run their own. To stop them:"
            echo "setup: systemctl disable --now softflowd nfdump pmacctd nfacctd sfacctd uacctd"
            ;;
    esac
    case " ${missing[*]} " in
        *" openvswitch-switch-dpdk "*)
            if [ "$(pgrep -x 'ovs-vswitchd|ovsdb-server' 2>/dev/null | wc -l || true)" -gt "$ovs_before" ]; then
                echo "setup: Debian started the system's Open vSwitch service. Linerate does not use it and leaves it alone;"
                echo "setup: its tests run their own. To stop it: systemctl disable --now openvswitch-switch"
            fi
            ;;
    esac
fi

if [ ${#no_captures[@]} -gt 0 ]; then
    echo "setup: fetching captures of real traffic (of the package $capture_package) to $captures"
    if (cd "$work" && apt-get download -qq "$capture_package" && dpkg -x "$capture_package"_*.deb .) </dev/null >>"$log" 2>&1; then
        data=$work/usr/lib/python3/dist-packages/pathspider/tests/data
        "${as_root[@]}" mkdir -p "$captures"
        for file in "${no_captures[@]}"; do
            # Whole or not at all.
            "${as_root[@]}" install -m 644 "$data/$file" "$captures/.$file.$$"
            "${as_root[@]}" mv "$captures/.$file.$$" "$captures/$file"
        done
        echo "setup: fetched"
    else
        tail -n 20 "$log" >&2
        # Not every release has the package. In CI the tests that need it fail; elsewhere they say that they did nothing.
        echo "setup: without captures: apt-get download $capture_package failed (above)" >&2
    fi
fi

if [ -n "$no_promtool" ]; then
    echo "setup: fetching promtool (of the package prometheus) to $promtool"
    if (cd "$work" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb prom) </dev/null >>"$log" 2>&1; then
        "${as_root[@]}" mkdir -p "${promtool%/*}"
        "${as_root[@]}" install -m 755 "$work/prom/usr/bin/promtool" "$promtool.$$"
        "${as_root[@]}" mv "$promtool.$$" "$promtool"
        echo "setup: fetched"
    else
        tail -n 20 "$log" >&2
        echo "setup: without promtool: apt-get download prometheus failed (above)" >&2
    fi
fi

if [ -n "$no_kernel" ]; then
    echo "setup: unpacking a kernel for virtual machines (of the package linux-image-cloud-amd64) to $kernel"
    if (
        cd "$work" &&
            package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1) &&
            apt-get download -qq "$package" && dpkg -x "$package"_*.deb kernel && mkdir -p kernel/lib &&
            { [ -d kernel/lib/modules ] || mv kernel/usr/lib/modules kernel/lib/; }
    ) </dev/null >>"$log" 2>&1; then
        "${as_root[@]}" rm -rf "$kernel" "$kernel.$$"
        "${as_root[@]}" mkdir -p "$kernel.$$/lib"
        "${as_root[@]}" cp -r "$work/kernel/boot" "$kernel.$$/"
        "${as_root[@]}" cp -r "$work/kernel/lib/modules" "$kernel.$$/lib/"
        "${as_root[@]}" mv "$kernel.$$" "$kernel"
        echo "setup: unpacked"
    else
        tail -n 20 "$log" >&2
        echo "setup: without a kernel for virtual machines: apt-get download failed (above)" >&2
    fi
fi

if [ -n "$no_netflow" ]; then
    echo "setup: fetching the Python package netflow $netflow_version, a decoder of records, to $netflow"
    if /usr/bin/python3 -m pip install --quiet --no-deps --target "$work/netflow" "netflow==$netflow_version" </dev/null >>"$log" 2>&1; then
        "${as_root[@]}" rm -rf "$netflow.$$"
        "${as_root[@]}" cp -r "$work/netflow" "$netflow.$$"
        "${as_root[@]}" rm -rf "$netflow"
        "${as_root[@]}" mv "$netflow.$$" "$netflow"
        echo "setup: fetched"
    else
        tail -n 20 "$log" >&2
        echo "setup: without netflow: pip install netflow==$netflow_version failed (above)" >&2
    fi
fi
