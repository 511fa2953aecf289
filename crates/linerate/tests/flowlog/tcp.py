"""A capture of TCP connections with known faults, written to FILE: tcp.py FILE.

Each connection has its own delays, losses and order; times are in microseconds from the begin.
"""

import sys

from scapy.all import Dot1Q, Ether, IP, IPv6, Raw, TCP, UDP, wrpcap
from scapy.layers.vxlan import VXLAN

packets = []
# Named, or scapy asks the network for them.
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


class Connection:
    """Client and server with their sequence numbers; each call appends a packet at a time."""

    def __init__(self, number, begin, v6=False, around=lambda packet: ETHER / packet, isn=(1000, 5000)):
        self.begin, self.v6, self.around = begin, v6, around
        self.port = 40000 + number
        self.isn = list(isn)

    def send(self, at, back, flags, offset=0, payload=0, ttl=64, dscp=0, read=1):
        """`offset` and `read`, up to where the other side is acknowledged, count from the initial sequence numbers."""
        ends = [("2001:db8::1", "2001:db8::2"), ("10.0.0.1", "10.0.0.2")][not self.v6]
        source, target = ends[::-1] if back else ends
        ports = (443, self.port) if back else (self.port, 443)
        if self.v6:
            ip = IPv6(src=source, dst=target, hlim=ttl, tc=dscp << 2)
        else:
            ip = IP(src=source, dst=target, ttl=ttl, tos=dscp << 2)
        sequence = (self.isn[back] + offset) % 2**32
        ack = 0 if flags == "S" else (self.isn[not back] + read) % 2**32
        packet = self.around(ip / TCP(sport=ports[0], dport=ports[1], flags=flags, seq=sequence, ack=ack) / Raw(b"x" * payload))
        packet.time = 1700000000 + (self.begin + at) / 1e6
        packets.append(packet)

    def handshake(self, server, client):
        self.send(0, False, "S")
        self.send(server, True, "SA")
        self.send(server + client, False, "A", 1)
        return server + client


def conversation(number, begin, server, client, **more):
    """A handshake, and five segments each way in order."""
    c = Connection(number, begin, **more)
    t = c.handshake(server, client)
    for n in range(5):
        c.send(t + 1000 + 2000 * n, False, "PA", 1 + 100 * n, 100)
        c.send(t + 2000 + 2000 * n, True, "PA", 1 + 700 * n, 700, ttl=57 - n, dscp=10 * (n // 2))
    return c, t + 12000


c, t = conversation(1, 0, 30_000, 12_000)
c, t = conversation(2, 50_000, 900, 400)
# The client's third segment once more, 200 ms later, and the server's last, twice.
c.send(t + 200_000, False, "PA", 201, 100)
c.send(t + 220_000, True, "PA", 2801, 700)
c.send(t + 240_000, True, "PA", 2801, 700)
c, t = conversation(3, 100_000, 20_000, 10_000, v6=True)
# Overtaken by the next one, and 1 ms late: less than a round trip.
c.send(t, False, "PA", 601, 100)
c.send(t + 1_000, False, "PA", 501, 100)
c.send(t + 2_000, False, "PA", 701, 100)
c, t = conversation(4, 150_000, 5_000, 5_000, isn=(2**32 - 150, 2**32 - 800))
# A hole that is filled after 300 ms.
c.send(t, True, "PA", 4201, 700)
c.send(t + 300_000, True, "PA", 3501, 700)
c, t = conversation(5, 200_000, 7_000, 3_000, around=lambda packet: ETHER / Dot1Q(vlan=9) / packet)
c.send(t, False, "FA", 501)
c.send(t + 1_000, True, "FA", 3501)
c.send(t + 400_000, True, "FA", 3501)
c, t = conversation(
    6, 250_000, 11_000, 9_000,
    around=lambda packet: ETHER / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=50000, dport=4789) / VXLAN(vni=7) / ETHER / packet)
c.send(t + 100_000, True, "PA", 1, 700)
# A connection whose begin was not seen.
c = Connection(7, 300_000)
c.send(0, False, "PA", 1, 10)
c.send(5_000, True, "A", 1)
c.send(90_000, False, "PA", 1, 10)


def bulk(number, begin, lost, again):
    """Sixty segments, one each millisecond, of which `lost` never come this far and go out again at `again`; round trip 30 ms."""
    c = Connection(number, begin)
    t = c.handshake(15_000, 15_000) + 1_000
    for n in range(60):
        if n not in lost:
            c.send(t + 1000 * n, False, "PA", 1 + 100 * n, 100)
        # The server's acknowledgements stay where the first hole is.
        hole = min(lost) if n > min(lost) else n + 1
        c.send(t + 1000 * n + 400, True, "A", 1, read=1 + 100 * hole)
    for i, n in enumerate(lost):
        c.send(t + again + 200 * i, False, "PA", 1 + 100 * n, 100)


# Sent again as soon as the client learned of it, in the middle of the others.
bulk(8, 500_000, [10], 41_500)
# Overtaken by one other.
c = Connection(10, 700_000)
t = c.handshake(15_000, 15_000) + 1_000
for n in [0, 1, 2, 4, 3, 5, 6, 7]:
    c.send(t, False, "PA", 1 + 100 * n, 100)
    t += 1_000

packets.sort(key=lambda packet: packet.time)
wrpcap(sys.argv[1], packets)
