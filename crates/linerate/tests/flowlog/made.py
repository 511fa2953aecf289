"""Captures with every header that the flow logger reads, built by scapy: made.py DIRECTORY.

Capture N has addresses of 10.N.0.0/16 or fd00:N::/32 (N in hexadecimal) in its innermost packets, so that the flows of all
captures can be told apart in one collector. Lengths, times and flags differ from frame to frame.
"""

import struct
import sys

from scapy.all import (
    ARP, GRE, ICMP, IP, IPv6, LLC, SCTP, STP, TCP, UDP, Dot1AD, Dot1Q, Ether, ICMPv6EchoReply, ICMPv6EchoRequest,
    IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PPP, PPPoE, PPPoED, PcapWriter, Raw,
)
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.l2 import CookedLinux
from scapy.layers.vxlan import VXLAN

START = 1_700_000_000
DIRECTORY = sys.argv[1]
ETHERNET, NULL, RAW, LOOP, SLL, SLL2 = 1, 0, 101, 108, 113, 276
count = 0


def eth(kind=None):
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", **({} if kind is None else {"type": kind}))


def flows(n, size=0):
    """Packets of a few flows: TCP with all flags, UDP both ways, ICMP and SCTP, IPv4 and IPv6."""
    a, b = f"10.{n}.0.1", f"10.{n}.0.2"
    c, d = f"fd00:{n:x}::1", f"fd00:{n:x}::2"
    load = lambda i: Raw(bytes(range(size + 7 * i)))
    tcp = ["S", "SA", "A", "PA", "FA", "A", "R", "U", "SEC", "N"]
    out = []
    for i, flags in enumerate(tcp):
        there = i % 2 == 0
        src, dst, ports = (a, b, (1000, 80)) if there else (b, a, (80, 1000))
        out.append(IP(src=src, dst=dst, tos=4 * i) / TCP(sport=ports[0], dport=ports[1], flags=flags) / load(i))
        src, dst = (c, d) if there else (d, c)
        out.append(IPv6(src=src, dst=dst, tc=8 * i) / TCP(sport=ports[0], dport=ports[1], flags=flags) / load(i))
    for i in range(5):
        out.append(IP(src=a, dst=b) / UDP(sport=2000 + i % 2, dport=53) / load(i))
        out.append(IPv6(src=c, dst=d) / UDP(sport=2000 + i % 2, dport=53) / load(i))
    out.append(IP(src=a, dst=b) / ICMP(type=8, code=0) / load(1))
    out.append(IP(src=b, dst=a) / ICMP(type=0, code=0) / load(1))
    out.append(IP(src=b, dst=a) / ICMP(type=3, code=3) / IP(src=a, dst=b) / UDP(sport=9, dport=9))
    out.append(IPv6(src=c, dst=d) / ICMPv6EchoRequest() / load(2))
    out.append(IPv6(src=d, dst=c) / ICMPv6EchoReply() / load(2))
    out.append(IP(src=a, dst=b) / SCTP(sport=5000, dport=5001))
    out.append(IP(src=a, dst=b, proto=89) / load(3))
    return out


def write(name, make, link=ETHERNET, snap=None, times=None, nano=False, before=()):
    """Capture `name`: what `make` says of each packet of `flows`, or of all of them if it takes a list."""
    global count
    count += 1
    frames = [*before, *make(count)]
    path = f"{DIRECTORY}/{count:02}-{name}.pcap"
    with PcapWriter(path, linktype=link, nano=nano) as writer:
        writer.write_header(None)
        for i, frame in enumerate(frames):
            frame = bytes(frame)
            at = times(i) if times else (i // 7, 1001 * i)
            writer.write_packet(frame[:snap], sec=START + count + at[0], usec=at[1], wirelen=len(frame))


def each(wrap, size=0):
    return lambda n: [wrap(packet) for packet in flows(n, size)]


def kind(packet):
    return 0x0800 if packet.version == 4 else 0x86DD


def outer(protocol=None):
    return eth() / IP(src="192.0.2.1", dst="192.0.2.2", **({} if protocol is None else {"proto": protocol}))


def labels(*numbers):
    out = eth(0x8847)
    for number in numbers:
        out = out / MPLS(label=number, ttl=64, s=0)
    out.lastlayer().s = 1
    return out


def gre(packet, present=0, more=b"", version=0):
    """GRE by hand: flags, protocol, and what they say follows."""
    return outer(47) / Raw(struct.pack("!HH", present | version, kind(packet)) + more + bytes(packet))


def erspan(packet, protocol, present, more):
    return outer(47) / Raw(struct.pack("!HH", present, protocol) + more + bytes(eth() / packet))


def extension(header):
    def wrap(packet):
        if packet.version == 6:
            rest = packet.payload
            packet = packet.copy()
            packet.remove_payload()
            packet = packet / header / rest
        return eth() / packet
    return wrap


def fragments(n):
    out = []
    for i in range(3):
        whole = IP(src=f"10.{n}.0.1", dst=f"10.{n}.0.2", id=i) / UDP(sport=7, dport=8) / Raw(bytes(3000))
        out += [eth() / part for part in whole.fragment(1400)]
        six = IPv6(src=f"fd00:{n:x}::1", dst=f"fd00:{n:x}::2") / IPv6ExtHdrFragment(id=i, m=1, offset=0) / UDP(sport=7, dport=8)
        out.append(eth() / six / Raw(bytes(800)))
        six = IPv6(src=f"fd00:{n:x}::1", dst=f"fd00:{n:x}::2") / IPv6ExtHdrFragment(id=i, m=0, offset=101, nh=17)
        out.append(eth() / six / Raw(bytes(500)))
    return out


def cooked2(packet):
    head = struct.pack("!HHIHBB", kind(packet), 0, 2, 1, 0, 6) + b"\x02\0\0\0\0\1\0\0"
    return Raw(head + bytes(packet))


OTHERS = [
    eth() / ARP(), eth(0x88CC) / Raw(bytes(50)), Ether(type=60) / LLC() / STP(), eth(0x8809) / Raw(bytes(50)),
    eth(0x88F7) / Raw(bytes(50)), eth() / PPPoED(),
]

write("plain", each(lambda p: eth() / p))
write("others", each(lambda p: eth() / p), before=OTHERS)
write("vlan", each(lambda p: eth() / Dot1Q(vlan=100) / p))
write("priority-tag", each(lambda p: eth() / Dot1Q(vlan=0, prio=5) / p))
write("qinq", each(lambda p: eth() / Dot1AD(vlan=10) / Dot1Q(vlan=20) / p))
write("old-qinq", each(lambda p: eth(0x9100) / Dot1Q(vlan=10, type=0x8100) / Dot1Q(vlan=20) / p))
write("four-tags", each(lambda p: eth() / Dot1AD(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / Dot1Q(vlan=4) / p))
write("mpls", each(lambda p: labels(1000) / p))
write("mpls-stack", each(lambda p: labels(1, 20000, 1048575) / p))
write("pppoe", each(lambda p: eth() / PPPoE(sessionid=7) / PPP(proto=0x21 if p.version == 4 else 0x57) / p))
write("pppoe-long", each(lambda p: eth(0x8864) / Raw(
    struct.pack("!BBHHH", 0x11, 0, 7, len(p) + 2, 0x21 if p.version == 4 else 0x57) + bytes(p))))
write("gre", each(gre))
write("gre-key", each(lambda p: gre(p, 0x2000, struct.pack("!I", 77))))
write("gre-all", each(lambda p: gre(p, 0xB000, struct.pack("!HHII", 0, 0, 77, 1))))
write("gre-ethernet", each(lambda p: outer() / GRE(proto=0x6558) / eth() / p))
write("erspan-1", each(lambda p: erspan(p, 0x88BE, 0, b"")))
write("erspan-2", each(lambda p: erspan(p, 0x88BE, 0x1000, struct.pack("!III", 5, 0x10000064, 9))))
write("ipip", each(lambda p: outer(4 if p.version == 4 else 41) / p))
write("ip-in-ipv6", each(lambda p: eth() / IPv6(src="2001:db8::1", dst="2001:db8::2", nh=4 if p.version == 4 else 41) / p))
write("gtpu", each(lambda p: outer() / UDP(sport=2152, dport=2152) / GTP_U_Header(teid=9, gtp_type=255) / p))
write("vxlan", each(lambda p: outer() / UDP(sport=50000, dport=4789) / VXLAN(vni=42) / eth() / p))
write("vxlan-vlan", each(lambda p: outer() / UDP(sport=50000, dport=4789) / VXLAN(vni=42) / eth() / Dot1Q(vlan=7) / p))
write("hop-by-hop", each(extension(IPv6ExtHdrHopByHop())))
write("destination", each(extension(IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt())))
write("routing", each(extension(IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=0))))
write("fragments", fragments)
write("padded", lambda n: [Raw(bytes(eth() / p).ljust(200, b"\x55")) for p in flows(n)])
write("cut-64", each(lambda p: eth() / p, 90), snap=64)
write("cut-96", each(lambda p: eth() / Dot1Q(vlan=3) / p, 90), snap=96)
write("out-of-order", each(lambda p: eth() / p), times=lambda i: (2, 1_000 * (i ^ 1)))
write("time-jumps", each(lambda p: eth() / p), times=lambda i: (5 * i, 999_999 - i))
write("nanoseconds", each(lambda p: eth() / p), times=lambda i: (0, 123_456_789 + i), nano=True)
write("raw-ip", each(lambda p: p), link=RAW)
write("null", each(lambda p: Raw(struct.pack("<I", 2 if p.version == 4 else 30) + bytes(p))), link=NULL)
write("loop", each(lambda p: Raw(struct.pack("!I", 2 if p.version == 4 else 30) + bytes(p))), link=LOOP)
write("cooked", each(lambda p: CookedLinux(proto=kind(p), src=b"\2\0\0\0\0\1") / p), link=SLL)
write("cooked-2", each(cooked2), link=SLL2)
