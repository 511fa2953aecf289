"""What the PyPI package `netflow` reads from UDP port PORT of loopback, a line of JSON for each record: netflow_lines.py PORT."""

import json
import socket
import sys

import netflow

incoming = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
incoming.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
incoming.bind(("127.0.0.1", int(sys.argv[1])))
templates = {"netflow": {}, "ipfix": {}}
while True:
    message, _ = incoming.recvfrom(65536)
    packet = netflow.parse_packet(message, templates)
    # Of NetFlow v9: times of flows count from here.
    boot = {"boot_ms": packet.header.timestamp * 1000 - packet.header.uptime} if packet.header.version == 9 else {}
    for record in packet.flows:
        # Numbers of 128 bits are more than many readers of JSON take.
        fields = {name: str(value) if isinstance(value, int) and value >> 64 else value for name, value in record.data.items()}
        print(json.dumps(fields | boot), flush=True)
