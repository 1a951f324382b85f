"""What floods.sh sends: `objects NUMBER` prints Deployments of 1 MB, `flood plain|tls PORT PROBES` holds 256 connections with unfinished
headers for ten seconds while it probes PROBES, and prints the number of probes, of failures, and the 99th percentile."""
import json, os, random, socket, ssl, string, sys, threading, time

def objects(number):
    letters = string.ascii_letters + string.digits
    items = []
    for index in range(number):
        text = "".join(random.Random(index).choices(letters, k=250_000))
        labels = {"app.kubernetes.io/managed-by": "memcached-operator", "x": f"x{index}"}
        env = [{"name": f"V{part}", "value": text} for part in range(4)]
        container = {"name": "memcached", "image": "example.com/x:1", "env": env}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        items.append({"apiVersion": "apps/v1", "kind": "Deployment",
                      "metadata": {"name": f"large-{index}", "namespace": "default", "labels": labels},
                      "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}})
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout)

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE

def hold(secure, port, stop):
    header = b"GET /metrics HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 400_000
    while not stop.is_set():
        try:
            stream = socket.create_connection(("127.0.0.1", port), timeout=5)
            if secure:
                stream = CONTEXT.wrap_socket(stream)
            # Some send all, the others as much as a server may read.
            stream.sendall(header if random.random() < 0.5 else header[:15_000])
            while not stop.is_set() and stream.recv(1024):
                pass
        except OSError:
            time.sleep(0.05)

def flood(kind, port, probes):
    stop, times, failed = threading.Event(), [], 0
    for _ in range(256):
        threading.Thread(target=hold, args=(kind == "tls", port, stop), daemon=True).start()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            stream = socket.create_connection(("127.0.0.1", probes), timeout=1)
            stream.settimeout(1)
            stream.sendall(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            failed += not stream.recv(1024).startswith(b"HTTP/1.1 200")
        except OSError:
            failed += 1
        times.append(time.monotonic() - begin)
        time.sleep(0.05)
    stop.set()
    times.sort()
    print(f"{len(times)} | {failed} | {times[int(len(times) * 0.99)] * 1000:.0f}", flush=True)
    os._exit(0)

if sys.argv[1] == "objects":
    objects(int(sys.argv[2]))
else:
    flood(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
