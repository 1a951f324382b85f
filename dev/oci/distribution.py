"""The registries `distribution` and zot for compare.py, and a token server for them. All listen on loopback only."""
import base64, hashlib, http.client, http.server, json, os, secrets, subprocess, threading, time, urllib.parse

USER, PASSWORD = "user", "secret"


def packed(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class TokenServer(http.server.ThreadingHTTPServer):
    """Issues tokens as the registry's documentation describes: by GET with basic authentication, by POST as OAuth 2."""

    def __init__(self, folder):
        self.key, self.certificate, self.requests = f"{folder}/key.pem", f"{folder}/certificate.pem", 0
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", self.certificate,
                        "-subj", "/CN=compare", "-days", "2"], check=True, capture_output=True)
        der = subprocess.run(["openssl", "x509", "-in", self.certificate, "-outform", "DER"], check=True, capture_output=True).stdout
        self.header = packed({"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(der).decode()]})
        super().__init__(("127.0.0.1", 0), TokenHandler)
        # crane rejects token servers with a private address as their name, oras those with another name than the registry.
        self.realm = f"http://localhost:{self.server_address[1]}/token"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def token(self, scopes):
        access = []
        for scope in scopes:
            kind, _, rest = scope.partition(":")
            name, _, actions = rest.rpartition(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        now = int(time.time())
        claims = {"iss": "compare", "sub": USER, "aud": "registry", "iat": now, "nbf": now - 60, "exp": now + 3600, "jti": secrets.token_hex(8), "access": access}
        text = self.header + b"." + packed(claims)
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text, check=True, capture_output=True).stdout
        return (text + b"." + packed(signature)).decode()


class TokenHandler(http.server.BaseHTTPRequestHandler):
    protocol_version, log_message = "HTTP/1.1", lambda *_: None

    def answer(self, status, document, **headers):
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {login}":
            return self.answer(401, {"details": "wrong credentials"}, WWW_Authenticate='Basic realm="tokens"')
        self.grant(query.get("scope", []))

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        if (form.get("username"), form.get("password")) != ([USER], [PASSWORD]):
            return self.answer(401, {"error": "invalid_grant"})
        self.grant(form.get("scope", [""])[0].split())

    def grant(self, scopes):
        self.server.requests += 1
        token = self.server.token(scopes)
        self.answer(200, {"token": token, "access_token": token, "expires_in": 3600})


class Server:
    """A running registry. `add` uploads like the registry in memory, so both can be filled by the same code."""

    def __init__(self, program, folder, tokens):
        os.makedirs(folder)
        self.tokens, self.own, self.rejected = TokenServer(folder) if tokens else None, {}, set()
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as free:
            self.host = f"{'localhost' if tokens else '127.0.0.1'}:{free.server_address[1]}"
        with open(f"{folder}/settings.json", "w") as file:
            json.dump(self.settings(folder, free.server_address[1]), file)
        with open(f"{folder}/log", "wb") as log:
            self.process = subprocess.Popen([program, "serve", f"{folder}/settings.json"], stdout=log, stderr=log, env={"OTEL_TRACES_EXPORTER": "none", "HOME": folder})
        for _ in range(600):
            try:
                self.request("GET", "/v2/")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(open(f"{folder}/log").read())
                time.sleep(0.1)
        raise RuntimeError("the registry does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def request(self, method, path, repository=None, body=None, **headers):
        if self.tokens and repository:
            if repository not in self.own:
                self.own[repository] = self.tokens.token([f"repository:{repository}:pull,push"])
            headers["Authorization"] = "Bearer " + self.own[repository]
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def add(self, repository, version, blobs, manifest, kind):
        for blob in blobs:
            status, headers, _ = self.request("POST", f"/v2/{repository}/blobs/uploads/", repository)
            place = urllib.parse.urlsplit(headers["Location"])
            digest = "sha256:" + hashlib.sha256(blob).hexdigest()
            status, _, text = self.request("PUT", f"{place.path}?{place.query}&digest={digest}", repository, blob, Content_Type="application/octet-stream")
            assert status == 201, (status, text)
        status, _, _ = self.request("PUT", f"/v2/{repository}/manifests/{version}", repository, manifest, Content_Type=kind)
        if status != 201:
            self.rejected.add(repository)

    def digest_of(self, repository, version):
        """The digest of a tag if everything that it refers to is there, else what is missing."""
        accept = ", ".join(f"application/vnd.{kind}+json" for kind in ("oci.image.manifest.v1", "oci.image.index.v1", "docker.distribution.manifest.v2", "docker.distribution.manifest.list.v2"))
        status, _, content = self.request("GET", f"/v2/{repository}/manifests/{version}", repository, Accept=accept)
        if status != 200:
            return f"no manifest {version}"
        document = json.loads(content)
        for below in document.get("manifests") or []:
            found = self.digest_of(repository, below["digest"])
            if not found.startswith("sha"):
                return found
        for blob in [document["config"], *(document.get("layers") or [])] if "config" in document else []:
            if self.request("HEAD", f"/v2/{repository}/blobs/{blob['digest']}", repository)[0] != 200:
                return f"no blob {blob['digest']}"
        algorithm = version.partition(":")[0] if ":" in version else "sha256"
        return f"{algorithm}:" + hashlib.new(algorithm, content).hexdigest()


class Distribution(Server):
    """The registry `distribution`."""

    def settings(self, folder, port):
        settings = {"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}}, "http": {"addr": f"127.0.0.1:{port}", "secret": "x"},
                    "storage": {"filesystem": {"rootdirectory": f"{folder}/data"}, "cache": {"blobdescriptor": "inmemory"}}}
        if self.tokens:
            settings["auth"] = {"token": {"realm": self.tokens.realm, "service": "registry", "issuer": "compare", "rootcertbundle": self.tokens.certificate}}
        return settings


class Zot(Server):
    """The registry zot, which accepts images with Docker's media types only if it is told to."""

    def settings(self, folder, port):
        http = {"address": "127.0.0.1", "port": str(port)}
        if self.tokens:
            http["auth"] = {"bearer": {"realm": self.tokens.realm, "service": "registry", "cert": self.tokens.certificate}}
        else:
            http["compat"] = ["docker2s2"]
        return {"distSpecVersion": "1.1.1", "storage": {"rootDirectory": f"{folder}/data"}, "http": http, "log": {"level": "error"}}
