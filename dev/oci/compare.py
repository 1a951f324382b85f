#!/usr/bin/env python3
"""compare.py [CASES [SEED]]: the same operations with olmkit, skopeo and crane over generated images and archives.

Prints a table: how many cases each tool accepted, and in how many the tools agree on acceptance, digests and files. Lists
each difference that EXPECTED does not explain, and exits with 1 if there is one. `dev/tools/build.sh skopeo crane` builds
the other tools. OLMKIT names the olmkit binary, SHOW=1 prints the answers of the tools for each difference.
"""
import collections, concurrent.futures, gzip, hashlib, io, json, os, random, re, shutil, subprocess, sys, tarfile, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_registry import CONFIG, INDEX, LAYER, MANIFEST, Registry, descriptor, digest

CACHE = os.environ.get("OLMKIT_DEV_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "olmkit")
OLMKIT = os.environ.get("OLMKIT", "olmkit")
SKOPEO, CRANE = os.path.join(CACHE, "bin", "skopeo"), os.path.join(CACHE, "bin", "crane")

# Differences that are decided in docs/contributing/evidence/images.md: (operation, mutation) and the tools that differ.
EXPECTED = {
    ("copy", "size of the config is wrong"): "crane",
    ("copy", "size of a layer is wrong"): "crane skopeo",
    ("copy", "manifest with manifests"): "crane",
    ("copy", "index with layers"): "crane",
    ("copy", "index spelled in another case"): "crane skopeo",
    ("copy", "header says index"): "crane skopeo",
    ("copy", "header says JSON"): "skopeo",
    ("files", "type says gzip, bytes are plain"): "crane",
    ("files", "name leads out"): "crane",
    ("files", "hard link through a linked directory"): "crane",
}


def explained(operation, mutation):
    # crane knows no lower variants, and takes ambiguous indexes.
    return "crane" if operation == "platform" else EXPECTED.get((operation, mutation), "")


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
        manifest = json.dumps(document).encode()
        if mutation == "not JSON":
            manifest = manifest[:-1]
        self.registry.add(self.repository, digest(manifest), blobs, manifest, header)
        entry = descriptor(MANIFEST, manifest)
        entry["platform"] = dict(zip(("os", "architecture", "variant"), platform))
        return manifest, header, entry, config, blobs, diff_ids


IMAGES = ["", "", "long names", "hard link through a linked directory", "a/../b", "name leads out", "whiteouts", "symbolic links", "sparse file",
          "size in a PAX record", "type says gzip, bytes are plain", "type says plain, bytes are gzip", "null values in the config", "no media type",
          "null annotations", "unknown fields", "manifest with manifests", "index spelled in another case", "size of the config is wrong",
          "size of a layer is wrong", "layer is missing", "header says index", "header says JSON", "not JSON"]
PLATFORMS = [("linux", "amd64"), ("linux", "amd64", "v2"), ("linux", "amd64", "v3"), ("linux", "arm64"), ("linux", "arm64", "v8"), ("linux", "arm", "v5"),
             ("linux", "arm", "v6"), ("linux", "arm", "v7"), ("linux", "arm"), ("linux", "s390x"), ("windows", "amd64")]
INDEXES = ["", "", "", "index with layers", "null annotations", "unknown fields"]
ARCHIVES = ["", "symbolic links for repeated layers", "long names", "gzip layers", "whole archive is gzip", "two tags", "no tags", "./ in front", "layers and diff_ids differ in number", "layer is missing"]


def run(*words):
    home = tempfile.mkdtemp(dir=WORK)
    env = {"HOME": home, "PATH": os.environ["PATH"], "TMPDIR": WORK, "XDG_RUNTIME_DIR": home}
    done = subprocess.run(words, env=env, capture_output=True, timeout=120)
    shutil.rmtree(home, ignore_errors=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def layout_digest(path, code):
    """The digest that a tool wrote into a layout, or nothing if it failed."""
    if code != 0:
        return None
    with open(os.path.join(path, "index.json")) as file:
        return json.load(file)["manifests"][0]["digest"]


def layout_config(path, code):
    top = layout_digest(path, code)
    if top is None:
        return None
    with open(os.path.join(path, "blobs", *top.split(":"))) as file:
        return json.load(file)["config"]["digest"]


def directory_config(path, code):
    """As layout_config, for skopeo's `dir:`, which keeps the configuration as it is."""
    if code != 0:
        return None
    with open(os.path.join(path, "manifest.json")) as file:
        return json.load(file)["config"]["digest"]


def copy_case(reference, platform, folder):
    """Copies to a layout with each tool: the digests."""
    os.makedirs(folder, exist_ok=True)
    os_, architecture, *variant = platform or ("", "")
    wanted = ["--platform", "/".join(platform)] if platform else []
    override = [f"--override-os={os_}", f"--override-arch={architecture}", *(f"--override-variant={v}" for v in variant)] if platform else []
    every = [] if platform else ["--all"]
    place = {tool: os.path.join(folder, tool) for tool in ("olmkit", "skopeo", "crane")}
    answers = {"olmkit": run(OLMKIT, "image", "copy", *wanted, reference, "oci:" + place["olmkit"]),
               "skopeo": run(SKOPEO, "--insecure-policy", *override, "copy", *every, "--preserve-digests", "--src-tls-verify=false", "docker://" + reference, f"oci:{place['skopeo']}:x"),
               "crane": run(CRANE, "pull", "--insecure", "--format=oci", *wanted, reference, place["crane"])}
    return {tool: layout_digest(place[tool], answer[0]) for tool, answer in answers.items()}, answers


def files_case(reference, empty, folder):
    """The regular files of an image, as olmkit's comparison with an empty image and crane's export show them."""
    code, out, error = run(OLMKIT, "image", "diff", "-o", "json", reference, empty)
    ours = None
    if code in (0, 1) and out.strip():
        texts = {item["what"][5:]: item["first"] for item in json.loads(out) if item["what"].startswith("file ")}
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


def archive_case(make, mutation, folder):
    """A docker-archive for olmkit and skopeo: the digests of the configuration. What olmkit writes again, skopeo reads."""
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
        if mutation == "symbolic links for repeated layers":
            document = json.loads(config); document["rootfs"]["diff_ids"].append(diff_ids[0]); config = json.dumps(document).encode()
            listed.append("again/layer.tar"); add("again/layer.tar", b"", "../" + names[0])
        if mutation == "layers and diff_ids differ in number":
            listed.append(names[0])
        for name, data in zip(names, plain):
            if mutation != "layer is missing" or name != names[0]:
                add(name, gzip.compress(data) if mutation == "gzip layers" else data)
        add("config.json", config)
        tags = {"two tags": ["a.io/b:v1", "a.io/b:v2"], "no tags": None}.get(mutation, ["a.io/b:v1"])
        add("manifest.json", json.dumps([{"Config": "config.json", "RepoTags": tags, "Layers": listed}]).encode())
    path = os.path.join(folder, "in.tar")
    with open(path, "wb") as file:
        file.write(gzip.compress(out.getvalue()) if mutation == "whole archive is gzip" else out.getvalue())
    ours, theirs, again = (os.path.join(folder, name) for name in ("ours", "theirs", "again"))
    answers = {"olmkit": run(OLMKIT, "image", "copy", "docker-archive:" + path, "oci:" + ours), "skopeo": run(SKOPEO, "--insecure-policy", "copy", "docker-archive:" + path, "dir:" + theirs)}
    result = {"olmkit": layout_config(ours, answers["olmkit"][0]), "skopeo": directory_config(theirs, answers["skopeo"][0])}
    if result["olmkit"]:
        written = os.path.join(folder, "out.tar")
        one = run(OLMKIT, "image", "copy", "docker-archive:" + path, f"docker-archive:{written}:a.io/b:v1")
        two = run(SKOPEO, "--insecure-policy", "copy", "docker-archive:" + written, "dir:" + again)
        read_again = directory_config(again, two[0])
        if one[0] != 0 or read_again != result["olmkit"]:
            result["skopeo"], answers["skopeo"] = f"reads {read_again} from what olmkit writes", (1, b"", one[2] + two[2])
    return result, answers


def one(number):
    """One case: (operation, mutation, results, answers) for each comparison."""
    random_ = random.Random(f"{SEED}/{number}")
    folder = tempfile.mkdtemp(dir=WORK)
    repository, host = f"r/i{number}", REGISTRY.host
    make = Maker(random_, REGISTRY, repository)
    found = []
    kind = random_.choice(["image", "image", "index", "archive"])
    if kind == "image":
        mutation = random_.choice(IMAGES)
        manifest, header, *_ = make.image(mutation)
        REGISTRY.add(repository, "v1", [], manifest, header)
        reference = f"{host}/{repository}:v1"
        results, answers = copy_case(reference, None, folder)
        found.append(("copy", mutation, results, answers))
        if results["olmkit"] and results["crane"]:
            found.append(("files", mutation, *files_case(reference, f"{host}/empty:v1", folder)))
    elif kind == "index":
        mutation = random_.choice(INDEXES)
        have = [random_.choice(PLATFORMS) for _ in range(random_.randrange(1, 6))]
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [make.image("", platform)[2] for platform in have]}
        document |= {"index with layers": {"layers": []}, "null annotations": {"annotations": None}, "unknown fields": {"new": [None]}}.get(mutation, {})
        index = json.dumps(document).encode()
        REGISTRY.add(repository, "v1", [], index, INDEX)
        for platform in (None, random_.choice(PLATFORMS)):
            results, answers = copy_case(f"{host}/{repository}:v1", platform, folder + ("/all" if platform is None else "/one"))
            found.append(("copy" if platform is None else "platform", mutation or ("" if platform is None else "/".join(platform) + " of " + " ".join("/".join(p[1:]) for p in have)), results, answers))
    else:
        mutation = random_.choice(ARCHIVES)
        found.append(("archive", mutation, *archive_case(make, mutation, folder)))
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
            for operation, mutation, results, answers in found:
                counts[operation] += 1
                for tool, result in results.items():
                    accepted[operation, tool] += result is not None
                different = [tool for tool, result in results.items() if result != results["olmkit"]]
                if not different:
                    counts[operation, "equal"] += 1
                elif set(different) <= set(explained(operation, mutation).split()):
                    counts[operation, "explained"] += 1
                else:
                    unexplained.append((operation, mutation, different, results, answers))
    print(f"seed {SEED}, {cases} cases")
    print("| operation | compared | accepted by olmkit | by skopeo | by crane | equal | decided differences | others |\n|---|---|---|---|---|---|---|---|")
    for operation in ("copy", "platform", "files", "archive"):
        row = [str(accepted[operation, tool]) if (operation, tool) in accepted else "" for tool in ("olmkit", "skopeo", "crane")]
        others = sum(1 for item in unexplained if item[0] == operation)
        print(f"| {operation} | {counts[operation]} | " + " | ".join(row) + f" | {counts[operation, 'equal']} | {counts[operation, 'explained']} | {others} |")
    for operation, mutation, different, results, answers in unexplained:
        print(f"{operation}: {mutation or 'no mutation'}: {', '.join(different)} differ")
        if os.environ.get("SHOW"):
            for tool, result in results.items():
                print(f"  {tool}: {str(result)[:300]} {answers[tool][2].strip()[-300:] if tool in answers else ''}")
    shutil.rmtree(WORK, ignore_errors=True)
    return 1 if unexplained else 0


if __name__ == "__main__":
    for program in (SKOPEO, CRANE):
        if not os.path.exists(program):
            sys.exit(f"error: {program} does not exist; run dev/tools/build.sh skopeo crane")
    SEED = sys.argv[2] if len(sys.argv) > 2 else "1"
    WORK = tempfile.mkdtemp(prefix="olmkit-compare-")
    REGISTRY = Registry()
    sys.exit(main())
