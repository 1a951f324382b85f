#!/usr/bin/env python3
"""speed.py [ROUNDS [MEGABYTES]]: time and memory of olmkit, skopeo, crane, regctl and oras for the same transfers and builds.

Copies an image of three layers between two `distribution` registries on loopback, from a registry to a layout and from a layout to a
registry, and builds an image from a directory. skopeo, regctl and oras build no images. Each round runs every tool once, with an
empty home and a new target. Prints medians: wall time, CPU time and the largest resident memory, and each relative to olmkit.
OLMKIT names the olmkit binary: use a release build. Needs GNU time (Debian: time).
"""
import json, os, random, shutil, statistics, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare
from compare import CRANE, OLMKIT, ORAS, REGCTL, REGISTRY_PROGRAM, SKOPEO, TOOLS, without_tls
from distribution import Distribution


def files(folder, random_, megabytes):
    """Files of which half the bytes compress well, like programs and texts."""
    os.makedirs(folder)
    words = [random_.randbytes(8).hex().encode() for _ in range(2000)]
    for number in range(megabytes):
        with open(f"{folder}/f{number}", "wb") as file:
            file.write(random_.randbytes(512 << 10))
            file.write(b" ".join(random_.choices(words, k=31_000))[: 512 << 10])


def measured(words, home):
    """Runs a command with GNU time, as a child of this process would count its memory: seconds, CPU seconds and megabytes."""
    words = ["sh", "-c", words] if isinstance(words, str) else words
    done = subprocess.run(["/usr/bin/time", "-o", f"{home}/figures", "-f", "%e %U %S %M", *words], capture_output=True,
                          env={"HOME": home, "TMPDIR": home, "PATH": os.environ["PATH"]})
    if done.returncode:
        sys.exit(f"error: {words}: {done.stderr.decode(errors='replace')[-2000:]}")
    with open(f"{home}/figures") as file:
        wall, user, system, memory = map(float, file.read().split())
    return wall, user + system, memory / 1024


def commands(operation, target, work, source, number):
    """The command of each tool. `source` is the reference of the image."""
    name = lambda tool: f"{target.host}/{operation.split()[0]}-{tool}-{number}/image:v1"
    place = lambda tool: f"{work}/out/{tool}-{number}"
    layout = f"{work}/layout"
    if operation == "copy between registries":
        return {"olmkit": [OLMKIT, "image", "copy", source, name("olmkit")],
                "skopeo": [SKOPEO, "--insecure-policy", "copy", "--all", "--src-tls-verify=false", "--dest-tls-verify=false", f"docker://{source}", f"docker://{name('skopeo')}"],
                "crane": [CRANE, "copy", "--insecure", source, name("crane")],
                "regctl": [REGCTL, *without_tls(source), *without_tls(name("regctl")), "image", "copy", source, name("regctl")],
                "oras": [ORAS, "cp", "--no-tty", "--from-plain-http", source, "--to-plain-http", name("oras")]}
    if operation == "pull to a layout":
        return {"olmkit": [OLMKIT, "image", "copy", source, f"oci:{place('olmkit')}:v1"],
                "skopeo": [SKOPEO, "--insecure-policy", "copy", "--all", "--src-tls-verify=false", f"docker://{source}", f"oci:{place('skopeo')}:v1"],
                "crane": [CRANE, "pull", "--insecure", "--format=oci", source, place("crane")],
                "regctl": [REGCTL, *without_tls(source), "image", "copy", source, f"ocidir://{place('regctl')}:v1"],
                "oras": [ORAS, "cp", "--no-tty", "--from-plain-http", source, "--to-oci-layout", f"{place('oras')}:v1"]}
    if operation == "push from a layout":
        return {"olmkit": [OLMKIT, "image", "copy", f"oci:{layout}:v1", name("olmkit")],
                "skopeo": [SKOPEO, "--insecure-policy", "copy", "--all", "--dest-tls-verify=false", f"oci:{layout}:v1", f"docker://{name('skopeo')}"],
                "crane": [CRANE, "push", "--insecure", layout, name("crane")],
                "regctl": [REGCTL, *without_tls(name("regctl")), "image", "copy", f"ocidir://{layout}:v1", name("regctl")],
                "oras": [ORAS, "cp", "--no-tty", "--from-oci-layout", f"{layout}:v1", "--to-plain-http", name("oras")]}
    return {"olmkit": [OLMKIT, "image", "build", "directory", f"{work}/files", "--tag", "built:v1", "--output", f"oci-archive:{place('olmkit')}.tar"],
            "crane": f"tar -C {work}/files -cf {place('tar')} . && exec {CRANE} append --oci-empty-base -f {place('tar')} -t built:v1 -o {place('crane')}.tar"}


def main():
    rounds, megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 5, int(sys.argv[2]) if len(sys.argv) > 2 else 96
    compare.WORK = work = tempfile.mkdtemp(prefix="olmkit-speed-")
    first, second = (Distribution(REGISTRY_PROGRAM, f"{work}/{name}", False) for name in ("first", "second"))
    try:
        random_ = random.Random(1)
        files(f"{work}/files", random_, megabytes)
        # Three layers, by building on the previous image.
        for layer in range(3):
            files(f"{work}/layer", random_, megabytes // 3)
            base = ["--base", f"oci:{work}/layer{layer - 1}:v1"] if layer else []
            built = compare.run(OLMKIT, "image", "build", "files", *base, "--add", f"{work}/layer:/layer{layer}", "--tag", "built:v1", "--output", f"oci:{work}/layer{layer}:v1")
            assert built[0] == 0, built
            shutil.rmtree(f"{work}/layer")
        os.rename(f"{work}/layer2", f"{work}/layout")
        with open(f"{work}/layout/index.json") as file:
            index = json.load(file)
        index["manifests"][0]["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
        with open(f"{work}/layout/index.json", "w") as file:
            json.dump(index, file)
        source = f"{first.host}/source/image:v1"
        pushed = compare.run(OLMKIT, "image", "copy", f"oci:{work}/layout:v1", source)
        assert pushed[0] == 0, pushed
        size = sum(os.path.getsize(f"{work}/layout/blobs/sha256/{name}") for name in os.listdir(f"{work}/layout/blobs/sha256"))
        print(f"{rounds} rounds, an image of {size / 1e6:.0f} MB in three layers; a directory of {megabytes} MiB")
        print("| operation | tool | wall time | CPU time | memory | relative to olmkit: wall | CPU | memory |\n|---|---|---|---|---|---|---|---|")
        for operation in ("copy between registries", "pull to a layout", "push from a layout", "build from a directory"):
            figures = {}
            for number in range(rounds):
                os.makedirs(f"{work}/out")
                for tool, words in commands(operation, second, work, source, number).items():
                    home = tempfile.mkdtemp(dir=work)
                    figures.setdefault(tool, []).append(measured(words, home))
                    shutil.rmtree(home)
                shutil.rmtree(f"{work}/out")
            medians = {tool: [statistics.median(values) for values in zip(*runs)] for tool, runs in figures.items()}
            for tool in (tool for tool in TOOLS if tool in medians):
                wall, cpu, memory = medians[tool]
                relative = [f"{value / own:.2f}" for value, own in zip(medians[tool], medians["olmkit"])]
                print(f"| {operation} | {tool}{' and tar' if operation.startswith('build') and tool == 'crane' else ''} | {wall:.2f} s | {cpu:.2f} s | {memory:.0f} MB | " + " | ".join(relative) + " |", flush=True)
    finally:
        first.stop()
        second.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
