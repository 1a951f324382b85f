"""What floods.sh sends: `objects NUMBER` prints Deployments of 1 MB, `flood plain|tls PORT PROBES` holds 256 connections with unfinished
headers for ten seconds while it probes PROBES, and prints the number of probes, of failures, and the 99th percentile. `webhooks
none|slow|conversions-NUMBER PORT` does the same with slow connections or unfinished conversions of 60 MB and well-behaved admission
requests. This is what webhook-floods.sh sends."""
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
    stop = threading.Event()
    for _ in range(256):
        threading.Thread(target=hold, args=(kind == "tls", port, stop), daemon=True).start()

    def probe():
        stream = socket.create_connection(("127.0.0.1", probes), timeout=1)
        stream.settimeout(1)
        stream.sendall(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        return stream.recv(1024).startswith(b"HTTP/1.1 200")

    measure(probe, stop)

def measure(probe, stop):
    """Calls a function for ten seconds: the number of calls, of those that failed, and the 99th percentile of their time."""
    times, failed = [], 0
    end = time.monotonic() + 10
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            failed += not probe()
        except OSError:
            failed += 1
        times.append(time.monotonic() - begin)
        time.sleep(0.05)
    stop.set()
    times.sort()
    print(f"{len(times)} | {failed} | {times[int(len(times) * 0.99)] * 1000:.0f}", flush=True)
    os._exit(0)

def post(path, length):
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n".encode()

def dribble(port, path, first, length, stop):
    """Sends a request of which some bytes come at once and the others one each second."""
    while not stop.is_set():
        try:
            stream = CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10))
            stream.sendall(post(path, length))
            for begin in range(0, first, 1 << 16):
                stream.sendall(b" " * min(1 << 16, first - begin))
            while not stop.wait(1):
                stream.sendall(b" ")
        except OSError:
            time.sleep(0.05)

def webhooks(kind, port):
    stop = threading.Event()
    number, path, first, length = 0, "/validate-cache-example-com-v1-memcached", 0, 10_000
    if kind == "slow":
        number = 300
    elif kind != "none":
        number, path, first, length = int(kind.split("-")[1]), "/convert", 59_000_000, 60_000_000
    for _ in range(number):
        threading.Thread(target=dribble, args=(port, path, first, length, stop), daemon=True).start()
    kinds = {"group": "cache.example.com", "version": "v1"}
    review = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "kind": kinds | {"kind": "Memcached"}, "resource": kinds | {"resource": "memcacheds"}, "name": "a", "namespace": "default", "operation": "CREATE",
        "userInfo": {"username": "x"}, "object": {"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "a", "namespace": "default"},
                                                  "spec": {"message": "Hello"}}}}).encode()

    def admit():
        # As long as the API server waits unless a configuration says otherwise.
        stream = CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10))
        stream.sendall(post("/validate-cache-example-com-v1-memcached", len(review)) + review)
        answer = b""
        while b'"allowed":true' not in answer:
            more = stream.recv(4096)
            if not more:
                return False
            answer += more
        return True

    measure(admit, stop)

if sys.argv[1] == "objects":
    objects(int(sys.argv[2]))
elif sys.argv[1] == "webhooks":
    webhooks(sys.argv[2], int(sys.argv[3]))
else:
    flood(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
