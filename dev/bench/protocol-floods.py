#!/usr/bin/env python3
"""Floods a server with misused HTTP/2, HTTP/1 and TLS and measures its memory, its CPU time and other clients.

    dev/bench/protocol-floods.py OLMKIT [--only WORD] [--seconds 6] [--clients 20]
    dev/bench/protocol-floods.py --pid PID --port PORT [--tls] …

The first form starts a catalog server. The second floods a server of kube-manager that is running: probes, or metrics or webhooks with
--tls. Exits with 1 if the server ends, takes more than --megabytes, or does not answer a probe.
"""
import argparse, os, socket, ssl, struct, subprocess, sys, tempfile, threading, time

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE
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


def hello():
    """The first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        CONTEXT.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def record(kind, body):
    return struct.pack(">BHH", kind, 0x303, len(body)) + body


def dribbled(pieces):
    def flood():
        for piece in pieces():
            yield piece
            time.sleep(0.2)
        while True:
            yield b""
            time.sleep(0.2)
    return flood


def single_bytes():
    return (hello()[at:at + 1] for at in range(10_000) if at < len(hello()))


# Before the handshake is complete, so the bytes are not encrypted.
HANDSHAKES = {
    "nothing": dribbled(lambda: []),
    "a byte of the hello at a time": dribbled(single_bytes),
    "hello, then nothing": dribbled(lambda: [hello()]),
    "hello, many times": lambda: endless(b"", hello() * 50)(),
    "a hello of 16 MB": endless(b"", record(22, b"\x01\xff\xff\xff" + bytes(16000))),
    "a hello in fragments of a byte": endless(record(22, b"\x01\xff\xff\xff"), record(22, b"a") * 2000),
    "empty records": endless(b"", record(22, b"") * 3000),
    "warnings": endless(b"", record(21, b"\x01\x5a") * 2000),
    "change of cipher": lambda: endless(hello(), record(20, b"\x01") * 2000)(),
    "plain HTTP": endless(b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 500),
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

        self.pid = self.process.pid

    def end(self):
        self.process.terminate()
        self.process.wait()


class Running:
    """A server that somebody else has started."""

    def __init__(self, pid, port):
        self.pid, self.grpc, self.http = pid, port, port

    def end(self):
        pass


def is_alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def memory(pid):
    status = open(f"/proc/{pid}/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(port, tls, timeout):
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    return CONTEXT.wrap_socket(connection) if tls else connection


def client(flood, port, tls, end, reads, sent):
    while time.time() < end:
        try:
            with connect(port, tls, 3) as connection:
                # One TLS connection is not for two threads.
                if reads and not tls:
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


def probe(port, tls):
    """Seconds until another client has its answer, or None."""
    begin = time.time()
    try:
        with connect(port, tls, 10) as connection:
            connection.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return time.time() - begin if connection.recv(100) else None
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("olmkit", nargs="?")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--megabytes", type=float, default=32)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--clients", type=int, default=20)
    args = parser.parse_args()
    if (args.olmkit is None) == (args.pid is None) or (args.pid is None) != (args.port is None):
        parser.error("name OLMKIT, or --pid and --port")
    failed = False
    with tempfile.TemporaryDirectory() as cache:
        server = Running(args.pid, args.port) if args.pid else Server(args.olmkit, cache)
        tls, pid = args.tls, server.pid
        print("| flood | sent | CPU time | most memory | probes | failed | longest |\n|---|---|---|---|---|---|---|")
        floods = [(f"HTTP/2 {name}", flood, server.grpc, tls, True) for name, flood in HTTP2.items()]
        floods += [(f"HTTP/2 {name}, unread", HTTP2[name], server.grpc, tls, False) for name in ("settings", "pings")]
        floods += [(f"HTTP/1 {name}", flood, server.http, tls, True) for name, flood in HTTP1.items()]
        floods += [("HTTP/1 pipelined requests, unread", HTTP1["pipelined requests"], server.http, tls, False)]
        if tls:
            floods += [(f"TLS {name}", flood, server.http, False, True) for name, flood in HANDSHAKES.items()]
        for name, flood, port, secure, reads in floods:
            if args.only not in name:
                continue
            end, before, sent, probes = time.time() + args.seconds, cpu(pid), [0], []
            for _ in range(args.clients):
                threading.Thread(target=client, args=(flood, port, secure, end, reads, sent), daemon=True).start()
            while time.time() < end:
                probes.append(probe(server.http, tls))
                time.sleep(0.1)
            if not is_alive(pid):
                sys.exit(f"{name}: the server ended")
            lost = probes.count(None)
            longest = max((taken for taken in probes if taken is not None), default=0)
            failed |= lost > 0 or memory(pid) > args.megabytes
            print(f"| {name} | {sent[0] / 1e6:.0f} MB | {cpu(pid) - before:.1f} s | {memory(pid):.0f} MB | {len(probes)} | {lost} | {longest:.2f} s |", flush=True)
        server.end()
    sys.exit(failed)


main()
