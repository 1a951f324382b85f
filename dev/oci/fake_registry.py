"""A registry in memory, for compare.py."""
import hashlib, http.server, threading

LAYER, CONFIG = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.config.v1+json"
MANIFEST, INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def descriptor(kind, content):
    return {"mediaType": kind, "digest": digest(content), "size": len(content)}


class Registry(http.server.ThreadingHTTPServer):
    def __init__(self):
        self.blobs, self.manifests, self.uploads = {}, {}, {}
        self.received = self.sent = 0  # bytes of blobs
        self.handle_error = lambda *_: None
        super().__init__(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def add(self, repository, version, blobs, manifest, kind):
        self.blobs.update({digest(blob): blob for blob in blobs})
        self.manifests[repository, version] = self.manifests[repository, digest(manifest)] = (kind, manifest)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, log_message = "HTTP/1.1", lambda *_: None

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size)); self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def serve(self):
        server, path, method, body = self.server, self.path, self.command, self.body()
        parts = path.split("?")[0].split("/")[2:]
        if path in ("/v2/", "/v2"):
            return self.answer(200, b"{}")
        repository, kind, version = "/".join(parts[:-2]), parts[-2], parts[-1]
        if "/blobs/uploads/" in path:
            if method == "POST":
                number = len(server.uploads); server.uploads[number] = b""
                return self.answer(202, Location=f"{path.split('?')[0]}{number}")
            number = int(version); server.uploads[number] += body; server.received += len(body)
            if method == "PUT":
                server.blobs[path.split("digest=")[1].replace("%3A", ":").split("&")[0]] = server.uploads[number]
                return self.answer(201, Location="/")
            last = max(0, len(server.uploads[number]) - 1)
            return self.answer(202 if method == "PATCH" else 204, Location=path, Range=f"0-{last}")
        if kind == "manifests" and method == "PUT":
            server.manifests[repository, version] = server.manifests[repository, digest(body)] = (self.headers["Content-Type"], body)
            return self.answer(201, Location="/", Docker_Content_Digest=digest(body))
        if kind == "manifests" and (repository, version) in server.manifests:
            media_type, manifest = server.manifests[repository, version]
            return self.answer(200, manifest, Content_Type=media_type)
        if kind == "blobs" and version in server.blobs:
            blob = server.blobs[version]
            server.sent += len(blob) if method == "GET" else 0
            return self.answer(200, blob, Content_Type="application/octet-stream")
        self.answer(404, b'{"errors":[{"code":"NOT_FOUND","message":"not found"}]}')

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = serve
