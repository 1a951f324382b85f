#!/usr/bin/env python3
"""compare.py [CASES [SEED]]: the same operations with olmkit, skopeo, crane, regctl and oras over generated images and archives.

The images are in a registry in memory, in the registry `distribution`, or in a `distribution` that requires tokens. If ZOT names a
binary of the registry zot, they are also in zot, which accepts Docker's media types, or in a zot that requires tokens. All run on
loopback. Prints a table: how many cases each tool accepted, and in how many the tools agree on acceptance, digests and files. Lists
each difference that EXPECTED does not explain, and exits with 1 if there is one. `dev/tools/build.sh images` builds the other tools
and the registry. OLMKIT names the olmkit binary, SHOW=1 prints the answers of the tools for each difference.
"""
import base64, bz2, collections, concurrent.futures, gzip, io, json, lzma, os, random, re, shutil, subprocess, sys, tarfile, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from distribution import PASSWORD, USER, Distribution, Zot
from fake_registry import CONFIG, INDEX, LAYER, MANIFEST, Registry, descriptor, digest

CACHE = os.environ.get("OLMKIT_DEV_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "olmkit")
OLMKIT = os.environ.get("OLMKIT", "olmkit")
SKOPEO, CRANE, REGCTL, ORAS, REGISTRY_PROGRAM = (os.path.join(CACHE, "bin", name) for name in ("skopeo", "crane", "regctl", "oras", "registry"))
TOOLS = ("olmkit", "skopeo", "crane", "regctl", "oras")
ZOT = os.environ.get("ZOT")
LOGINS = []  # registries that require the user and the password
SERVERS = {}  # the running registries other than that in memory

# Differences that are decided in docs/contributing/evidence/images.md: (operation, mutation) and the tools that differ.
EXPECTED = {
    ("copy", "size of the config is wrong"): "crane",
    ("copy", "size of a layer is wrong"): "crane skopeo",
    ("copy", "manifest with manifests"): "crane regctl oras",
    ("copy", "index with layers"): "crane regctl oras",
    ("copy", "index spelled in another case"): "crane skopeo regctl oras",
    ("copy", "header says index"): "crane skopeo oras",
    ("copy", "header says JSON"): "skopeo regctl oras",
    ("copy", "artifact type and subject"): "oras",
    ("copy", "no content type"): "skopeo oras",
    ("copy", "index without content type"): "skopeo crane oras",
    ("copy", "index, header says JSON"): "skopeo crane regctl oras",
    ("copy", "layers twice"): "skopeo crane regctl oras",
    ("push", "manifest with manifests"): "crane regctl oras",
    ("push", "artifact type and subject"): "oras",
    ("push", "size of a layer is wrong"): "skopeo",
    # zot then answers HEAD for this layer with 404.
    ("push to zot", "size of a layer is wrong"): "skopeo crane regctl oras",
    ("files", "type says gzip, bytes are plain"): "crane",
    ("files", "name leads out"): "crane",
    ("files", "file replaces a directory"): "crane",
    ("files", "hard link through a linked directory"): "crane",
    ("archive", "whole archive is gzip"): "crane",
    ("archive", "whole archive is bzip2"): "crane",
    ("archive", "whole archive is xz"): "crane",
    ("archive", "links to a directory"): "regctl",
    ("archive", "layers and diff_ids differ in number"): "crane regctl",
}


# The variants that a processor also runs, by the variant that was requested.
LOWER = {("ppc64le", ""): ["power8"], ("riscv64", ""): ["rva20u64"], ("arm", "v7"): ["v6", "v5"], ("arm", "v6"): ["v5"], ("arm", ""): ["v7", "v6", "v5"], ("amd64", "v3"): ["v2"], ("arm64", ""): ["v8"]}


def explained(operation, name, mutation, results):
    # The tools choose platforms differently, so olmkit is compared with the rule.
    return " ".join(TOOLS) if operation == "platform" and results["olmkit"] == results["rule"] else \
        EXPECTED.get((f"{operation} to zot" if name.startswith("zot") else operation, mutation)) or EXPECTED.get((operation, mutation), "")


def chosen(wanted, have):
    """The position that a platform selects: the exact variant, then the entry without a variant, then lower variants."""
    os_, architecture, *variant = wanted
    variant = variant[0] if variant else ""
    for candidate in (variant, "", *LOWER.get((architecture, variant), [])):
        entry = (os_, architecture, *([candidate] if candidate else []))
        if entry in have:
            return have.index(entry)
    return None


PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, check=True, capture_output=True).stdout


class Maker:
    """Makes images of one case."""

    def __init__(self, random_, registry, repository):
        self.random, self.registry, self.repository = random_, registry, repository

    def tar(self, mutation):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=self.random.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as archive:
            def add(name, data=b"", kind=tarfile.REGTYPE, link="", **more):
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, link, len(data)
                info.pax_headers = more
                archive.addfile(info, io.BytesIO(data))
            for number in range(self.random.randrange(1, 6)):
                deep = "/".join(self.random.choice(["etc", "usr", "a", "b"]) for _ in range(self.random.randrange(1, 4)))
                add(f"{deep}/f{number}", self.random.randbytes(self.random.randrange(0, 2000)))
            if mutation == "long names":
                add("d" * 90 + "/" + "n" * 120, b"long")
            elif mutation == "hard link through a linked directory":
                add("usr/real/x", b"x"); add("lnk", kind=tarfile.SYMTYPE, link="usr/real"); add("hard", kind=tarfile.LNKTYPE, link="lnk/x")
            elif mutation == "a/../b":
                add("usr/../etc/dots", b"dots")
            elif mutation == "name leads out":
                add("../out", b"out")
            elif mutation == "whiteouts":
                add("etc/.wh.gone"); add("usr/.wh..wh..opq")
            elif mutation == "symbolic links":
                add("etc/link", kind=tarfile.SYMTYPE, link="../usr"); add("loop", kind=tarfile.SYMTYPE, link="loop")
            elif mutation == "sparse file":
                add("sparse", b"abc", **{"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.numblocks": "2", "GNU.sparse.map": "3,2,8,1", "GNU.sparse.size": "10", "GNU.sparse.name": "real"})
            elif mutation == "name that is not UTF-8":
                info = tarfile.TarInfo("etc/n\udcff\udcfe"); info.size = 3
                archive.addfile(info, io.BytesIO(b"not"))
            elif mutation == "empty directories and modes":
                add("empty", kind=tarfile.DIRTYPE); add("empty/deep", kind=tarfile.DIRTYPE)
            elif mutation == "file replaces a directory":
                add("usr/x/y", b"y"); add("usr/x", b"file")
            elif mutation == "size in a PAX record":
                add("sized", b"x" * 700, size="700")
        return out.getvalue()

    def image(self, mutation="", platform=("linux", "amd64")):
        """Adds an image; its manifest and the descriptor for an index."""
        blobs, layers, diff_ids = [], [], []
        for _ in range(self.random.randrange(1, 4)):
            plain = self.tar(mutation)
            packed = gzip.compress(plain, 1) if self.random.random() < 0.6 else plain
            kind = LAYER + ("+gzip" if packed is not plain else "")
            if mutation == "zstd":
                packed, kind = zstd(plain), LAYER + "+zstd"
            elif mutation == "type says zstd, bytes are gzip":
                packed, kind = gzip.compress(plain, 1), LAYER + "+zstd"
            elif mutation == "gzip in two members":
                packed, kind = gzip.compress(plain[:700], 1) + gzip.compress(plain[700:], 1), LAYER + "+gzip"
            elif mutation == "bytes after the end of gzip":
                packed, kind = gzip.compress(plain, 1) + b"\0" * 100, LAYER + "+gzip"
            if mutation == "type says gzip, bytes are plain":
                packed, kind = plain, LAYER + "+gzip"
            elif mutation == "type says plain, bytes are gzip":
                packed, kind = gzip.compress(plain, 1), LAYER
            layers.append(descriptor(kind, packed)); diff_ids.append(digest(plain)); blobs.append(packed)
        config = {"os": platform[0], "architecture": platform[1], "config": {"Env": ["A=1"]}, "rootfs": {"type": "layers", "diff_ids": diff_ids}}
        if len(platform) > 2:
            config["variant"] = platform[2]
        if mutation == "null values in the config":
            config["config"] = {"Env": None, "Labels": None, "ExposedPorts": None}; config["history"] = None
        config = json.dumps(config).encode(); blobs.append(config)
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config), "layers": layers}
        header = MANIFEST
        if mutation == "no media type":
            del document["mediaType"]
        elif mutation == "null annotations":
            document["annotations"] = None
        elif mutation == "unknown fields":
            document["new"] = {"deep": [1, None]}
        elif mutation == "manifest with manifests":
            document["manifests"] = []
        elif mutation == "index spelled in another case":
            document["Manifests"] = [descriptor(MANIFEST, b"{}")]
        elif mutation == "size of the config is wrong":
            document["config"]["size"] += 1
        elif mutation == "size of a layer is wrong":
            document["layers"][0]["size"] += 1
        elif mutation == "layer is missing":
            document["layers"][0]["digest"] = digest(b"gone")
        elif mutation == "header says index":
            header = INDEX
        elif mutation == "header says JSON":
            header = "application/json"
        elif mutation == "Docker media types":
            header = document["mediaType"] = "application/vnd.docker.distribution.manifest.v2+json"
            document["config"]["mediaType"] = "application/vnd.docker.container.image.v1+json"
            for layer in document["layers"]:
                layer["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar" + (".gzip" if layer["mediaType"].endswith("gzip") else "")
        elif mutation == "layers and diff_ids differ in number":
            document["layers"].append(document["layers"][0])
        elif mutation == "same layer twice":
            document["layers"].append(document["layers"][0])
            value = json.loads(config); value["rootfs"]["diff_ids"].append(diff_ids[0])
            config = json.dumps(value).encode(); blobs.append(config); document["config"] = descriptor(CONFIG, config)
        elif mutation == "annotations on descriptors":
            document["config"]["annotations"] = {"a": "b"}; document["layers"][0]["annotations"] = {"c": "d"}
        elif mutation == "no layers field":
            del document["layers"]
        elif mutation == "layers is null":
            document["layers"] = None
        elif mutation == "schema version 3":
            document["schemaVersion"] = 3
        elif mutation == "artifact type and subject":
            document |= {"artifactType": "application/x", "subject": descriptor(MANIFEST, b"gone")}
        elif mutation == "duplicate keys":
            document["annotations"] = {"a": "1"}
        elif mutation == "no content type" and self.registry is REGISTRY:
            header = None
        manifest = json.dumps(document).encode()
        if mutation == "duplicate keys":
            manifest = manifest[:-1] + b', "annotations": {"a": "2"}}'
        elif mutation == "layers twice":
            manifest = manifest[:-1] + b', "layers": []}'
        elif mutation == "equal layers twice":
            manifest = manifest[:-1] + b', "layers": ' + json.dumps(document["layers"]).encode() + b"}"
        elif mutation == "byte order mark":
            manifest = b"\xef\xbb\xbf" + manifest
        elif mutation == "white space around the document":
            manifest = b"\n " + manifest + b" \n"
        if mutation == "not JSON":
            manifest = manifest[:-1]
        self.registry.add(self.repository, digest(manifest), blobs, manifest, header)
        entry = descriptor(MANIFEST, manifest)
        entry["platform"] = dict(zip(("os", "architecture", "variant"), platform))
        return manifest, header, entry, config, blobs, diff_ids


IMAGES = ["", "", "long names", "hard link through a linked directory", "a/../b", "name leads out", "whiteouts", "symbolic links", "sparse file",
          "size in a PAX record", "type says gzip, bytes are plain", "type says plain, bytes are gzip", "null values in the config", "no media type",
          "null annotations", "unknown fields", "manifest with manifests", "index spelled in another case", "size of the config is wrong",
          "size of a layer is wrong", "layer is missing", "header says index", "header says JSON", "not JSON", "name that is not UTF-8",
          "empty directories and modes", "file replaces a directory", "zstd", "type says zstd, bytes are gzip", "gzip in two members",
          "bytes after the end of gzip", "Docker media types", "layers and diff_ids differ in number", "same layer twice",
          "annotations on descriptors", "no layers field", "layers is null", "schema version 3", "artifact type and subject",
          "duplicate keys", "layers twice", "equal layers twice", "no content type", "byte order mark", "white space around the document"]
PUSHES = ["", "", "", "", "zstd", "Docker media types", "same layer twice", "unknown fields", "null annotations", "bytes of a layer are wrong",
          "layer is missing", "size of a layer is wrong", "manifest with manifests", "artifact type and subject", "annotations on descriptors",
          "white space around the document", "no media type"]
PLATFORMS = [("linux", "amd64"), ("linux", "amd64", "v2"), ("linux", "amd64", "v3"), ("linux", "arm64"), ("linux", "arm64", "v8"), ("linux", "arm", "v5"),
             ("linux", "arm", "v6"), ("linux", "arm", "v7"), ("linux", "arm"), ("linux", "s390x"), ("linux", "ppc64le", "power8"), ("linux", "riscv64", "rva20u64"), ("windows", "amd64")]
INDEXES = ["", "", "", "", "index with layers", "null annotations", "unknown fields", "index without content type", "index, header says JSON"]
ARCHIVES = ["", "absolute links for repeated layers", "links to a directory", "manifest.json is a link", "keys in lower case", "symbolic links for repeated layers", "long names", "gzip layers", "bzip2 layers", "xz layers", "whole archive is gzip",
            "whole archive is bzip2", "whole archive is xz", "damaged file that is not needed", "two tags", "no tags", "./ in front", "layers and diff_ids differ in number", "layer is missing"]


def run(*words):
    home = tempfile.mkdtemp(dir=WORK)
    os.mkdir(f"{home}/.docker")
    with open(f"{home}/.docker/config.json", "w") as file:
        json.dump({"auths": {host: {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()} for host in LOGINS}}, file)
    env = {"HOME": home, "PATH": os.environ["PATH"], "TMPDIR": WORK, "XDG_RUNTIME_DIR": home}
    done = subprocess.run(words, env=env, capture_output=True, timeout=120)
    shutil.rmtree(home, ignore_errors=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def layout_digest(path, code):
    """The digest that a tool wrote into a layout, or nothing if it failed."""
    if code != 0:
        return None
    with open(os.path.join(path, "index.json")) as file:
        entries = json.load(file)["manifests"]
    return ([entry for entry in entries if "v1" in (entry.get("annotations") or {}).values()] or entries)[0]["digest"]


def config_in(path, top):
    with open(os.path.join(path, "blobs", *top.split(":"))) as file:
        return json.load(file)["config"]["digest"]


def layout_config(path, code):
    top = layout_digest(path, code)
    return top and config_in(path, top)


def directory_config(path, code):
    """As layout_config, for skopeo's `dir:`, which keeps the configuration as it is."""
    if code != 0:
        return None
    with open(os.path.join(path, "manifest.json")) as file:
        return json.load(file)["config"]["digest"]


def pushed_config(repository, code):
    """As layout_config, for an image that a tool has pushed to the registry in memory."""
    if code != 0 or (repository, "v1") not in REGISTRY.manifests:
        return None
    return json.loads(REGISTRY.manifests[repository, "v1"][1])["config"]["digest"]


def without_tls(reference):
    """The flags with which regctl speaks plain HTTP to the registry of a reference."""
    return ["--host", f"reg={reference.split('/')[0]},tls=disabled"]


def copy_case(reference, platform, folder):
    """Copies to a layout with each tool: the digests."""
    os.makedirs(folder, exist_ok=True)
    os_, architecture, *variant = platform or ("", "")
    wanted = ["--platform", "/".join(platform)] if platform else []
    override = [f"--override-os={os_}", f"--override-arch={architecture}", *(f"--override-variant={v}" for v in variant)] if platform else []
    every = [] if platform else ["--all"]
    place = {tool: os.path.join(folder, tool) for tool in TOOLS}
    answers = {"olmkit": run(OLMKIT, "image", "copy", *wanted, reference, "oci:" + place["olmkit"]),
               "skopeo": run(SKOPEO, "--insecure-policy", *override, "copy", *every, "--preserve-digests", "--src-tls-verify=false", "docker://" + reference, f"oci:{place['skopeo']}:x"),
               "crane": run(CRANE, "pull", "--insecure", "--format=oci", *wanted, reference, place["crane"]),
               "regctl": run(REGCTL, *without_tls(reference), "image", "copy", *wanted, reference, f"ocidir://{place['regctl']}:v1"),
               "oras": run(ORAS, "cp", "--no-tty", *wanted, "--from-plain-http", reference, "--to-oci-layout", f"{place['oras']}:v1")}
    return {tool: layout_digest(place[tool], answer[0]) for tool, answer in answers.items()}, answers


def push_case(make, mutation, registry, repository, folder):
    """Writes a layout and pushes it with each tool to `distribution`: the digests that the registry has."""
    manifest, header, entry, *_ = make.image(mutation)
    layout = os.path.join(folder, "layout")
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(header, manifest)]}
    if make.random.random() < 0.4 and mutation == "":
        index["manifests"] = [entry, make.image("", ("linux", "arm64"))[2]]
        top = json.dumps(index).encode()
        make.registry.add(repository, "v1", [], top, INDEX)
        index["manifests"] = [descriptor(INDEX, top)]
    index["manifests"][0]["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
    make.registry.write(layout, index)
    if mutation == "bytes of a layer are wrong":
        with open(f"{layout}/blobs/{json.loads(manifest)['layers'][0]['digest'].replace(':', '/')}", "r+b") as file:
            file.write(b"!")
    target = {tool: f"{registry.host}/{repository}-{tool}:v1" for tool in TOOLS}
    answers = {"olmkit": run(OLMKIT, "image", "copy", f"oci:{layout}:v1", target["olmkit"]),
               "skopeo": run(SKOPEO, "--insecure-policy", "copy", "--all", "--preserve-digests", "--dest-tls-verify=false", f"oci:{layout}:v1", "docker://" + target["skopeo"]),
               "crane": run(CRANE, "push", "--insecure", layout, target["crane"]),
               "regctl": run(REGCTL, *without_tls(target["regctl"]), "image", "copy", f"ocidir://{layout}:v1", target["regctl"]),
               "oras": run(ORAS, "cp", "--no-tty", "--from-oci-layout", f"{layout}:v1", "--to-plain-http", target["oras"])}
    return {tool: registry.digest_of(f"{repository}-{tool}", "v1") if answer[0] == 0 else None for tool, answer in answers.items()}, answers


def files_case(reference, empty, folder):
    """The regular files of an image, as olmkit's comparison with an empty image and crane's export show them."""
    code, out, error = run(OLMKIT, "image", "diff", "-o", "json", reference, empty)
    ours = None
    if code in (0, 1) and out.strip():
        texts = {item["what"][5:]: item["first"] for item in json.loads(out) if item["what"].startswith("file ")}
        # olmkit prints a byte that is not UTF-8 in a private range, Python reads it as a surrogate.
        texts = {"".join(chr(ord(c) - 0xF700 + 0xDC00) if 0xF780 <= ord(c) <= 0xF7FF else c for c in name): text for name, text in texts.items()}
        ours = sorted((name, re.search(r"sha256:\w+", text)[0]) for name, text in texts.items() if "bytes, sha256" in (text or ""))
    status, tar, message = run(CRANE, "export", "--insecure", reference, "-")
    theirs = None
    if status == 0:
        # crane leaves links; a hard link is a file of its own for a user.
        found = {}
        try:
            with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
                for member in archive:
                    name = "/" + os.path.normpath(member.name).lstrip("/")
                    if member.isreg() or member.islnk():
                        found[name] = digest(archive.extractfile(member).read())
            theirs = sorted(found.items())
        except (tarfile.TarError, KeyError, OSError) as problem:
            message = str(problem)
    return {"olmkit": ours, "crane": theirs}, {"olmkit": (code, b"", error), "crane": (status, b"", message)}


class Collector:
    """Keeps the blobs and manifests of one case, like a registry."""

    def __init__(self):
        self.blobs, self.documents = [], []

    def add(self, _repository, _version, blobs, manifest, _kind):
        self.blobs += blobs
        self.documents.append(manifest)

    def write(self, layout, index):
        """Writes a layout with everything that was added."""
        os.makedirs(f"{layout}/blobs/sha256")
        for content in self.blobs + self.documents:
            with open(f"{layout}/blobs/{digest(content).replace(':', '/')}", "wb") as file:
                file.write(content)
        for name, document in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", index)):
            with open(f"{layout}/{name}", "w") as file:
                json.dump(document, file)


def archive_case(make, mutation, folder):
    """A docker-archive: the digests of the configuration. skopeo and crane also read the archive that olmkit writes."""
    _, _, _, config, blobs, diff_ids = make.image()
    plain = [gzip.decompress(blob) if blob[:2] == b"\x1f\x8b" else blob for blob in blobs[:-1]]
    names = [f"{value.split(':')[1]}/layer.tar" for value in diff_ids]
    if mutation == "long names":
        names = ["n" * 110 + "/" + name for name in names]
    front = "./" if mutation == "./ in front" else ""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        def add(name, data, link=None):
            info = tarfile.TarInfo(front + name); info.size = len(data)
            if link:
                info.type, info.linkname, info.size = tarfile.SYMTYPE, link, 0
            archive.addfile(info, io.BytesIO(data))
        listed = list(names)
        if mutation in ("symbolic links for repeated layers", "absolute links for repeated layers", "links to a directory"):
            document = json.loads(config); document["rootfs"]["diff_ids"].append(diff_ids[0]); config = json.dumps(document).encode()
            listed.append("again/layer.tar")
            if mutation == "links to a directory":
                add("again", b"", os.path.dirname(names[0]))
            else:
                add("again/layer.tar", b"", ("../" if mutation.startswith("symbolic") else "/") + names[0])
        if mutation == "layers and diff_ids differ in number":
            listed.append(names[0])
        for name, data in zip(names, plain):
            if mutation != "layer is missing" or name != names[0]:
                packer = PACKERS.get(mutation.removesuffix(" layers"), bytes)
                add(name, packer(data))
        if mutation == "damaged file that is not needed":
            add("other/layer.tar", bz2.compress(b"x" * 99)[:-9])
        add("config.json", config)
        tags = {"two tags": ["a.io/b:v1", "a.io/b:v2"], "no tags": None}.get(mutation, ["a.io/b:v1"])
        keys = ("config", "repotags", "layers") if mutation == "keys in lower case" else ("Config", "RepoTags", "Layers")
        content = json.dumps([dict(zip(keys, ("config.json", tags, listed)))]).encode()
        if mutation == "manifest.json is a link":
            add("list.json", content); add("manifest.json", b"", "list.json")
        else:
            add("manifest.json", content)
    path = os.path.join(folder, "in.tar")
    with open(path, "wb") as file:
        file.write(PACKERS.get(mutation.removeprefix("whole archive is "), bytes)(out.getvalue()))
    ours, theirs, again = (os.path.join(folder, name) for name in ("ours", "theirs", "again"))
    answers = {"olmkit": run(OLMKIT, "image", "copy", "docker-archive:" + path, "oci:" + ours), "skopeo": run(SKOPEO, "--insecure-policy", "copy", "docker-archive:" + path, "dir:" + theirs)}
    pushed = {tool: f"{make.repository}-{tool}" for tool in ("crane", "regctl")}
    target = {tool: f"{REGISTRY.host}/{repository}:v1" for tool, repository in pushed.items()}
    answers["crane"] = run(CRANE, "push", "--insecure", path, target["crane"])
    answers["regctl"] = run(REGCTL, *without_tls(target["regctl"]), "image", "import", target["regctl"], path)
    result = {"olmkit": layout_config(ours, answers["olmkit"][0]), "skopeo": directory_config(theirs, answers["skopeo"][0]),
              **{tool: pushed_config(repository, answers[tool][0]) for tool, repository in pushed.items()}}
    if result["olmkit"]:
        written = os.path.join(folder, "out.tar")
        one = run(OLMKIT, "image", "copy", "docker-archive:" + path, f"docker-archive:{written}:a.io/b:v1")
        two = run(SKOPEO, "--insecure-policy", "copy", "docker-archive:" + written, "dir:" + again)
        read_again = directory_config(again, two[0])
        if one[0] != 0 or read_again != result["olmkit"]:
            result["skopeo"], answers["skopeo"] = f"reads {read_again} from olmkit's archive", (1, b"", one[2] + two[2])
        three = run(CRANE, "push", "--insecure", written, target["crane"].replace("-crane", "-again"))
        if pushed_config(pushed["crane"].replace("-crane", "-again"), three[0]) != result["olmkit"]:
            result["crane"], answers["crane"] = "cannot read olmkit's archive", (1, b"", three[2])
    return result, answers


def one(number):
    """One case: (registry, operation, mutation, results, answers) for each comparison."""
    random_ = random.Random(f"{SEED}/{number}")
    folder = tempfile.mkdtemp(dir=WORK)
    repository, found = f"r/i{number}", []
    kind = random_.choice(["image", "image", "index", "archive", "push"])
    name = random_.choice(["memory", *SERVERS]) if kind != "archive" else "memory"
    if kind == "push" and name == "memory":
        name = "plain"
    registry = SERVERS.get(name, REGISTRY)
    make, reference = Maker(random_, registry, repository), f"{registry.host}/{repository}:v1"
    if kind == "image":
        mutation = random_.choice(IMAGES)
        manifest, header, *_ = make.image(mutation)
        registry.add(repository, "v1", [], manifest, header)
        if name == "memory" or repository not in registry.rejected:
            results, answers = copy_case(reference, None, folder)
            found.append((name, "copy", mutation, results, answers))
            if results["olmkit"] and results["crane"]:
                found.append((name, "files", mutation, *files_case(reference, f"{REGISTRY.host}/empty:v1", folder)))
    elif kind == "index":
        mutation = random_.choice(INDEXES)
        have = [random_.choice(PLATFORMS) for _ in range(random_.randrange(1, 6))]
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [make.image("", platform)[2] for platform in have]}
        document |= {"index with layers": {"layers": []}, "null annotations": {"annotations": None}, "unknown fields": {"new": [None]}}.get(mutation, {})
        index = json.dumps(document).encode()
        header = {"index without content type": None, "index, header says JSON": "application/json"}.get(mutation, INDEX)
        registry.add(repository, "v1", [], index, header if name == "memory" else INDEX)
        for platform in (None, random_.choice(PLATFORMS)) if name == "memory" or repository not in registry.rejected else ():
            results, answers = copy_case(reference, platform, folder + ("/all" if platform is None else "/one"))
            if platform:
                at = None if mutation == "index with layers" else chosen(platform, have)
                results["rule"] = None if at is None else document["manifests"][at]["digest"]
            words = "/".join(platform) + " of " + " ".join("/".join(p) for p in have) if platform else ""
            found.append((name, "copy" if platform is None else "platform", mutation or words, results, answers))
    elif kind == "push":
        mutation = random_.choice(PUSHES)
        make.registry = Collector()
        found.append((name, "push", mutation, *push_case(make, mutation, registry, repository, folder)))
    else:
        mutation = random_.choice(ARCHIVES)
        found.append((name, "archive", mutation, *archive_case(make, mutation, folder)))
    shutil.rmtree(folder, ignore_errors=True)
    return found


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    make = Maker(random.Random(0), REGISTRY, "empty")
    config = json.dumps({"os": "linux", "architecture": "amd64", "config": {"Env": ["A=1"]}, "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    empty = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config), "layers": []}).encode()
    REGISTRY.add("empty", "v1", [config], empty, MANIFEST)
    counts, accepted, unexplained = collections.Counter(), collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
        for found in pool.map(one, range(cases)):
            counts["without comparison"] += not found
            for name, operation, mutation, results, answers in found:
                row = (operation, name)
                counts[row] += 1
                for tool, result in results.items():
                    accepted[row, tool] += result is not None
                different = [tool for tool, result in results.items() if result != results["olmkit"]]
                if not different:
                    counts[row, "equal"] += 1
                elif set(different) - {"rule"} <= set(explained(operation, name, mutation, results).split()):
                    counts[row, "explained"] += 1
                else:
                    counts[row, "other"] += 1
                    unexplained.append((row, mutation, different, results, answers))
    print(f"seed {SEED}, {cases} cases, of which the registry itself rejects {counts['without comparison']}")
    print("| operation | registry | compared | accepted by " + " | by ".join(TOOLS) + " | equal | decided differences | others |\n" + "|---" * (6 + len(TOOLS)) + "|")
    for row in sorted(key for key in counts if isinstance(key, tuple) and isinstance(key[0], str)):
        tools = [str(accepted[row, tool]) if (row, tool) in accepted else "" for tool in TOOLS]
        print(f"| {row[0]} | {row[1] if row[0] != 'archive' else ''} | {counts[row]} | " + " | ".join(tools) + " | " + " | ".join(str(counts[row, kind]) for kind in ("equal", "explained", "other")) + " |")
    for (operation, name), mutation, different, results, answers in unexplained:
        print(f"{operation} ({name}): {mutation or 'no mutation'}: {', '.join(different)} differ")
        if os.environ.get("SHOW"):
            for tool, result in results.items():
                print(f"  {tool}: {str(result)[:300]} {answers[tool][2].strip()[-300:] if tool in answers else ''}")
    requests = sum(server.tokens.requests for server in SERVERS.values() if server.tokens)
    print(f"the token servers answered {requests} requests")
    return 1 if unexplained else 0


if __name__ == "__main__":
    for program in (SKOPEO, CRANE, REGCTL, ORAS, REGISTRY_PROGRAM):
        if not os.path.exists(program):
            sys.exit(f"error: {program} does not exist; run dev/tools/build.sh images")
    SEED = sys.argv[2] if len(sys.argv) > 2 else "1"
    WORK = tempfile.mkdtemp(prefix="olmkit-compare-")
    REGISTRY = Registry()
    if not ZOT:
        print("zot is left out, because ZOT names no binary of it")
    programs = {"plain": (Distribution, REGISTRY_PROGRAM), "tokens": (Distribution, REGISTRY_PROGRAM)}
    programs |= {"zot": (Zot, ZOT), "zot, tokens": (Zot, ZOT)} if ZOT else {}
    try:
        for name, (server, program) in programs.items():
            SERVERS[name] = server(program, os.path.join(WORK, name), name.endswith("tokens"))
        LOGINS.extend(server.host for server in SERVERS.values() if server.tokens)
        status = main()
    finally:
        for server in SERVERS.values():
            server.stop()
        shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(status)
