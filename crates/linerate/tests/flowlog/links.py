"""A capture of flows by what stands before their packets: links.py FILE. Flow N has the source port 1000 + N."""

import sys

from scapy.all import IP, IPv6, UDP, Dot1AD, Dot1Q, Ether, Raw, wrpcap
from scapy.contrib.mpls import MPLS
from scapy.layers.vxlan import VXLAN


def eth(n, kind=None):
    return Ether(src=f"02:00:00:00:01:{n:02x}", dst=f"02:00:00:00:02:{n:02x}", **({} if kind is None else {"type": kind}))


def packet(n, six=False, load=20):
    ip = IPv6(src="fd00::1", dst="fd00::2") if six else IP(src="10.0.0.1", dst="10.0.0.2")
    return ip / UDP(sport=1000 + n, dport=53) / Raw(bytes(load))


def stack(frame, *labels):
    for n, (label, cos) in enumerate(labels):
        frame = frame / MPLS(label=label, cos=cos, ttl=64, s=int(n == len(labels) - 1))
    return frame


many = [(100 + n, n % 8) for n in range(12)]
LINKS = [
    lambda n: eth(n),
    lambda n: eth(n) / Dot1Q(vlan=100, prio=3),
    lambda n: eth(n) / Dot1Q(vlan=0, prio=5, id=1),
    lambda n: eth(n) / Dot1AD(vlan=10, prio=1) / Dot1Q(vlan=20, prio=2),
    lambda n: eth(n, 0x9100) / Dot1Q(vlan=11, prio=1, type=0x8100) / Dot1Q(vlan=21, prio=2),
    lambda n: eth(n) / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / Dot1Q(vlan=4, prio=7),
    lambda n: stack(eth(n, 0x8847), (1000, 5)),
    lambda n: stack(eth(n, 0x8847), (0, 0), (20000, 1), (1048575, 7)),
    lambda n: stack(eth(n, 0x8847), *many[:10]),
    lambda n: stack(eth(n, 0x8847), *many),
    lambda n: stack(eth(n) / Dot1Q(vlan=30, prio=4, type=0x8847), (7, 0), (8, 0)),
    lambda n: eth(n) / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=5, dport=4789) / VXLAN(vni=9) / eth(99) / Dot1Q(vlan=9),
]
frames = [link(n) / packet(n) for n, link in enumerate(LINKS)]
frames += [link(n) / packet(n, six=True) for n, link in enumerate(LINKS[:11], start=20)]
# An answer, by another VLAN.
answer = IP(src="10.0.0.2", dst="10.0.0.1") / UDP(sport=53, dport=1000) / Raw(bytes(9))
frames += [eth(54) / Dot1Q(vlan=54, prio=6) / answer, eth(55) / answer]
# Later frames of a flow come otherwise: the first one counts.
frames += [eth(77) / Dot1Q(vlan=77) / packet(0), eth(78) / packet(1), stack(eth(79, 0x8847), (79, 0)) / packet(6)]
wrpcap(sys.argv[1], frames)
