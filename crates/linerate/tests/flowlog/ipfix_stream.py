"""What the PyPI package `netflow` reads of IPFIX over TCP or TLS, a line of JSON for each record.

ipfix_stream.py PORT [CERT KEY CA]: with files, TLS by OpenSSL, and the exporter must show a certificate of CA.
ipfix_stream.py PORT stall: takes connections and reads nothing.
"""

import json
import socket
import ssl
import sys

import netflow

port, files = int(sys.argv[1]), sys.argv[2:]
listener = socket.create_server(("127.0.0.1", port))
if files == ["stall"]:
    connections = []
    while True:
        connections.append(listener.accept())
        print("accepted", flush=True)
if files:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files[0], files[1])
    context.load_verify_locations(files[2])
    context.verify_mode = ssl.CERT_REQUIRED
    listener = context.wrap_socket(listener, server_side=True)


def exactly(stream, size):
    """So many bytes, or fewer where the stream ends."""
    held = b""
    while len(held) < size:
        more = stream.recv(size - len(held))
        if not more:
            return b""
        held += more
    return held


while True:
    try:
        stream, _ = listener.accept()
    except ssl.SSLError as error:
        print(json.dumps({"refused": error.reason}), flush=True)
        continue
    templates = {}
    while header := exactly(stream, 16):
        message = header + exactly(stream, int.from_bytes(header[2:4], "big") - 16)
        parsed = netflow.parse_packet(message, {"netflow": {}, "ipfix": templates})
        templates.update(parsed.templates)
        for part in parsed.sets:
            for record in part.records if part.is_data else []:
                print(json.dumps({"set": part.header.set_id, **record.data}), flush=True)
    stream.close()
