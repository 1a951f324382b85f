#!/usr/bin/env python3
"""bytes.py: the bytes of blobs that olmkit, skopeo, crane, regctl and oras transfer when they copy an image between repositories.

The registries are in memory, and each repository has its own blobs. OLMKIT names the olmkit binary.
"""
import gzip, json, os, random, shutil, sys, tempfile
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare
from compare import CRANE, OLMKIT, ORAS, REGCTL, SKOPEO, TOOLS, without_tls
from fake_registry import CONFIG, LAYER, MANIFEST, Handler, Registry, descriptor, digest


class Repositories(Registry):
    def __init__(self):
        self.owned = set()  # repositories with the digests of their blobs
        super().__init__()
        self.RequestHandlerClass = RepositoriesHandler

    def add(self, repository, version, blobs, manifest, kind):
        self.owned.update((repository, digest(blob)) for blob in blobs)
        super().add(repository, version, blobs, manifest, kind)


class RepositoriesHandler(Handler):
    def serve(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        repository, _, blob = url.path.removeprefix("/v2/").partition("/blobs/")
        mounted = query.get("mount")
        if self.command == "POST" and (query.get("from"), mounted) in self.server.owned:
            self.body()
            self.server.owned.add((repository, mounted))
            return self.answer(201, Location=f"/v2/{repository}/blobs/{mounted}", Docker_Content_Digest=mounted)
        if blob.startswith("uploads/"):
            if self.command == "PUT":
                self.server.owned.add((repository, query["digest"]))
        elif blob and (repository, blob) not in self.server.owned:
            return self.answer(404, b'{"errors":[{"code":"BLOB_UNKNOWN","message":"not found"}]}')
        super().serve()

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = serve


def command(tool, source, target):
    return {"olmkit": [OLMKIT, "image", "copy", source, target],
            "skopeo": [SKOPEO, "--insecure-policy", "copy", "--all", "--src-tls-verify=false", "--dest-tls-verify=false", f"docker://{source}", f"docker://{target}"],
            "crane": [CRANE, "copy", "--insecure", source, target],
            "regctl": [REGCTL, *without_tls(source), *without_tls(target), "image", "copy", source, target],
            "oras": [ORAS, "cp", "--no-tty", "--from-plain-http", source, "--to-plain-http", target]}[tool]


def main():
    compare.WORK = tempfile.mkdtemp(prefix="olmkit-bytes-")
    content = random.Random(1).randbytes(2 << 20)
    layer = gzip.compress(content, mtime=0)
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(content)]}}).encode()
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config), "layers": [descriptor(f"{LAYER}+gzip", layer)]}).encode()
    image = ([config, layer], manifest, MANIFEST)
    print("| case | tool | downloads | uploads |\n|---|---|---|---|")
    try:
        for case in ("new target", "the target has the blobs", "other repository of the same registry"):
            for tool in TOOLS:
                first, second = Repositories(), Repositories()
                first.add("source", "v1", *image)
                if case == "the target has the blobs":
                    second.add("target", "old", *image)
                target = first if case.startswith("other") else second
                code, _, error = compare.run(*command(tool, f"{first.host}/source:v1", f"{target.host}/target:v1"))
                assert code == 0 and target.manifests["target", "v1"] == (MANIFEST, manifest), (tool, error)
                assert {("target", digest(blob)) for blob in image[0]} <= target.owned, (case, tool)
                print(f"| {case} | {tool} | {first.sent:,} | {target.received:,} |")
                for server in (first, second):
                    server.shutdown(); server.server_close()
    finally:
        shutil.rmtree(compare.WORK)


if __name__ == "__main__":
    main()
