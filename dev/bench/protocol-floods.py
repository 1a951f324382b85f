#!/usr/bin/env python3
"""Floods a catalog server with misused HTTP/2 and HTTP/1 and measures its memory, its CPU time and other clients.

    dev/bench/protocol-floods.py OLMKIT [--only WORD] [--seconds 6] [--clients 20]

Exits with 1 if the server ends, takes more than 32 MB, or does not answer a probe.
"""
import argparse, os, socket, struct, subprocess, sys, tempfile, threading, time

MOST_MEGABYTES = 32
HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 1, 2, 3, 4, 6, 7, 8, 9


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def number(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def header(name, value, kind=b"\x00"):
    length = bytes([len(value)]) if len(value) < 127 else b"\x7f" + number(len(value) - 127)
    return kind + bytes([len(name)]) + name + length + value


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)
CALL = b"\x83\x86" + header(b":path", b"/api.Registry/ListPackages") + header(b":authority", b"x") \
    + header(b"content-type", b"application/grpc") + header(b"te", b"trailers")


def calls(make, pause=0.0):
    """Requests on one stream after the other."""
    def flood():
        yield PREFACE
        for first in range(1, 2**31 - 400, 200):
            yield b"".join(make(stream) for stream in range(first, first + 200, 2))
            time.sleep(pause)
    return flood


def endless(start, repeated):
    def flood():
        yield start
        while True:
            yield repeated
    return flood


POST = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
HTTP2 = {
    "requests that are reset at once": calls(lambda stream: frame(HEADERS, 5, stream, CALL) + frame(RESET, 0, stream, struct.pack(">I", 8))),
    "requests that make the server reset": calls(lambda stream: frame(HEADERS, 4, stream, CALL) + frame(WINDOW, 0, stream, bytes(4))),
    "requests without an end": calls(lambda stream: frame(HEADERS, 4, stream, CALL), pause=0.02),
    "header continuations": endless(PREFACE + frame(HEADERS, 1, 1, CALL), frame(CONTINUATION, 0, 1, header(b"a", b"b" * 100) * 100)),
    "empty continuations": endless(PREFACE + frame(HEADERS, 1, 1, CALL), frame(CONTINUATION, 0, 1) * 1000),
    "settings": endless(PREFACE, frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500),
    "pings": endless(PREFACE, frame(PING, 0, 0, bytes(8)) * 500),
    "empty data": endless(PREFACE + frame(HEADERS, 4, 1, CALL), frame(0, 0, 1) * 1000),
    "window updates": endless(PREFACE, frame(WINDOW, 0, 0, struct.pack(">I", 1)) * 1000),
    "priorities": endless(PREFACE, b"".join(frame(PRIORITY, 0, 2 * at + 1, bytes(5)) for at in range(1, 500))),
    "unknown frames": endless(PREFACE, frame(0x77, 0, 0, bytes(16000))),
    "compressed headers": endless(PREFACE + frame(HEADERS, 5, 1, CALL + header(b"a", b"b" * 4000, b"\x40")), frame(HEADERS, 5, 3, CALL + b"\xbe" * 12000)),
    "goodbyes": endless(PREFACE, frame(GOAWAY, 0, 0, bytes(1008)) * 10),
}
HTTP1 = {
    "pipelined requests": endless(b"", b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 500),
    "chunk extensions": endless(POST, b"1;" + b"a" * 8000 + b"\r\nx\r\n"),
    "one chunk extension": endless(POST + b"1;", b"a" * 16000),
    "zeros as a chunk size": endless(POST, b"0" * 16000),
    "trailers": endless(POST + b"0\r\n", b"a: b\r\n" * 1000),
    "headers": endless(b"GET /x HTTP/1.1\r\n", b"a: b\r\n" * 1000),
    "empty lines": endless(b"", b"\r\n" * 8000),
    "upgrades": endless(b"", b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" * 50),
    "two lengths": endless(b"", b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" * 50),
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, program, cache):
        self.grpc, self.http = free_port(), free_port()
        catalog = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../catalog")
        words = ["catalog", "serve", catalog, "--port", str(self.grpc), f"--http=127.0.0.1:{self.http}", "--cache-dir", cache]
        self.process = subprocess.Popen([program, *words, "--termination-log", "none", "-q"])
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.http), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)

    def memory(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(flood, port, end, reads, sent):
    while time.time() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
                if reads:
                    threading.Thread(target=drain, args=(connection,), daemon=True).start()
                for piece in flood():
                    connection.sendall(piece)
                    sent[0] += len(piece)
                    if time.time() > end:
                        break
        except OSError:
            time.sleep(0.01)


def drain(connection):
    try:
        while connection.recv(65536):
            pass
    except (OSError, ValueError):
        pass


def probe(port):
    """Seconds until another client has its answer, or None."""
    begin = time.time()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return time.time() - begin if connection.recv(100) else None
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("olmkit")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--clients", type=int, default=20)
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as cache:
        server = Server(args.olmkit, cache)
        print("| flood | sent | CPU time | most memory | probes | failed | longest |\n|---|---|---|---|---|---|---|")
        floods = [(f"HTTP/2 {name}", flood, server.grpc, True) for name, flood in HTTP2.items()]
        floods += [(f"HTTP/2 {name}, unread", HTTP2[name], server.grpc, False) for name in ("settings", "pings")]
        floods += [(f"HTTP/1 {name}", flood, server.http, True) for name, flood in HTTP1.items()]
        floods += [("HTTP/1 pipelined requests, unread", HTTP1["pipelined requests"], server.http, False)]
        for name, flood, port, reads in floods:
            if args.only not in name:
                continue
            end, before, sent, probes = time.time() + args.seconds, server.cpu(), [0], []
            for _ in range(args.clients):
                threading.Thread(target=client, args=(flood, port, end, reads, sent), daemon=True).start()
            while time.time() < end:
                probes.append(probe(server.http))
                time.sleep(0.1)
            if server.process.poll() is not None:
                sys.exit(f"{name}: the server ended")
            lost = probes.count(None)
            longest = max((taken for taken in probes if taken is not None), default=0)
            failed |= lost > 0 or server.memory() > MOST_MEGABYTES
            print(f"| {name} | {sent[0] / 1e6:.0f} MB | {server.cpu() - before:.1f} s | {server.memory():.0f} MB | {len(probes)} | {lost} | {longest:.2f} s |", flush=True)
        server.process.terminate()
        server.process.wait()
    sys.exit(failed)


main()
