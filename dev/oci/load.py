#!/usr/bin/env python3
"""load.py [CASES [SEED]]: loads docker-archives that olmkit writes into containerd and skopeo.

Generates images as compare.py does, lets olmkit write each as a docker-archive with a tag, a name without a tag or no name, and imports it
into a containerd process with a root of its own. containerd unpacks the layers, so it also checks their digests. Compared: the tags and
the configuration's digest. Needs root, containerd and ctr (Debian: containerd), and skopeo (dev/tools/build.sh skopeo). OLMKIT names
the olmkit binary. Exits with 1 if an archive is not loaded as it should be.
"""
import json, os, random, shutil, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare
from compare import OLMKIT, SKOPEO, Collector, Maker, config_in, descriptor, directory_config, run

# Images that every tool accepts; in a docker-archive their layers are uncompressed.
IMAGES = ["", "", "long names", "hard link through a linked directory", "a/../b", "whiteouts", "symbolic links", "sparse file", "zstd",
          "type says gzip, bytes are plain", "type says plain, bytes are gzip", "null values in the config", "Docker media types",
          "same layer twice", "name that is not UTF-8", "empty directories and modes"]
CONFIGURATION = """version = 2
root = "%(root)s/root"
state = "%(root)s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "%(root)s/socket"
[ttrpc]
  address = "%(root)s/socket.ttrpc"
"""


class Containerd:
    def __init__(self, root):
        self.root = root
        with open(f"{root}/config.toml", "w") as file:
            file.write(CONFIGURATION % {"root": root})
        with open(f"{root}/log", "wb") as log:
            self.process = subprocess.Popen(["containerd", "--config", f"{root}/config.toml"], stdout=log, stderr=log)
        for _ in range(600):
            if self.ctr("version")[0] == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"error: containerd does not answer: {open(f'{root}/log').read()[-2000:]}")

    def ctr(self, *words):
        # The native snapshotter copies files, so no file system must be mounted on another.
        return run("ctr", "--address", f"{self.root}/socket", *words)

    def load(self, archive, *flags):
        """Imports an archive: the names of its images, the configuration's digest of each, and the error."""
        for name in self.ctr("images", "ls", "-q")[1].decode().split():
            self.ctr("images", "rm", name)
        code, _, error = self.ctr("images", "import", "--snapshotter", "native", *flags, archive)
        images = {}
        for name in self.ctr("images", "ls", "-q")[1].decode().split():
            line = self.ctr("images", "ls", f"name=={name}")[1].decode().splitlines()[1].split()
            document = json.loads(self.ctr("content", "get", line[2])[1])
            if "manifests" in document:
                document = json.loads(self.ctr("content", "get", document["manifests"][0]["digest"])[1])
            images[name] = document["config"]["digest"]
        return images if code == 0 else {}, error

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    cases, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "1"
    compare.WORK = work = tempfile.mkdtemp(prefix="olmkit-load-")
    # Sockets have short paths.
    place = tempfile.mkdtemp(prefix="olmkit-", dir="/run")
    containerd, failed, counts = Containerd(place), 0, {"a tag": 0, "a name only": 0, "no name": 0}
    try:
        for number in range(cases):
            random_ = random.Random(f"{seed}/{number}")
            mutation, tags = random_.choice(IMAGES), random_.choice(list(counts))
            make, folder = Maker(random_, Collector(), "load"), f"{work}/{number}"
            manifest, header, *_ = make.image(mutation)
            wanted = json.loads(manifest)["config"]["digest"]
            index = {"schemaVersion": 2, "manifests": [descriptor(header, manifest) | {"annotations": {"org.opencontainers.image.ref.name": "v1"}}]}
            make.registry.write(f"{folder}/layout", index)
            archive = f"{folder}/image.tar"
            name = {"a tag": "example.com/a/b:v1", "a name only": "example.com/a/b", "no name": ""}[tags]
            code, _, error = run(OLMKIT, "image", "copy", f"oci:{folder}/layout:v1", f"docker-archive:{archive}:{name}".rstrip(":"))
            problems = [f"olmkit: {error}"] if code else []
            # containerd imports an image without a name only under a name with its digest.
            found, error = containerd.load(archive, *([] if name else ["--base-name", "example.com/none", "--digests"]))
            expected = {"a tag": "example.com/a/b:v1", "a name only": "example.com/a/b:latest", "no name": "example.com/none@"}[tags]
            if len(found) != 1 or not all(key.startswith(expected) and value == wanted for key, value in found.items()):
                problems.append(f"containerd has {found}: {error}")
            code, _, error = run(SKOPEO, "--insecure-policy", "copy", f"docker-archive:{archive}:{name}".rstrip(":"), f"dir:{folder}/dir")
            if directory_config(f"{folder}/dir", code) != wanted:
                problems.append(f"skopeo: {error}")
            counts[tags] += 1
            failed += bool(problems)
            for problem in problems:
                print(f"case {number}: {mutation or 'no mutation'}, {tags}: {problem.strip()[-500:]}")
            shutil.rmtree(folder)
    finally:
        containerd.stop()
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
    print(f"seed {seed}: {cases} archives ({', '.join(f'{count} with {tags}' for tags, count in counts.items())}), {failed} not loaded as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
