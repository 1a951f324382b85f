#!/usr/bin/env python3
"""Compares olmkit's model of upgrade graphs with upstream's own code. Run it through compare.sh, which builds both.

    compare.py --upstream PROGRAM --olmkit PROGRAM catalogs --seed 7 --count 1000
    compare.py --upstream PROGRAM --olmkit PROGRAM bundles --seed 7 --count 1000
    compare.py --upstream PROGRAM --olmkit PROGRAM real DIRECTORY...      # each with one or more packages
    compare.py --upstream PROGRAM --olmkit PROGRAM operators GIT-DIR@COMMIT...  # all bundles of each operator of a repository
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

import generate

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VERSION_AT_END = re.compile(r"[.-]v?(\d+\.\d+\.\d+.*)$")


class Program:
    """Asks one program. Questions go in small groups, so that no pipe fills up."""

    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, questions):
        answers = []
        for start in range(0, len(questions), 20):
            part = questions[start:start + 20]
            self.process.stdin.write("".join(json.dumps(question) + "\n" for question in part))
            self.process.stdin.flush()
            for question in part:
                line = self.process.stdout.readline()
                if not line:
                    sys.exit(f"a program ended at the question {json.dumps(question)}")
                answers.append(json.loads(line))
        return answers


def version_in(name):
    found = VERSION_AT_END.search(name)
    return found and found.group(1)


def strange(held):
    """Versions that no bundle has."""
    for at, version in enumerate(sorted(held)):
        major, minor, patch = re.match(r"(\d+)\.(\d+)\.(\d+)", version).groups()
        yield [f"{major}.{minor}.{int(patch) + 5}", f"{major}.{int(minor) + 1}.0-rc.7", f"{major}.{minor}.{patch}-alpha.0.9"][at % 3]


def questions(blobs, directory):
    """From each bundle and each name in a channel entry, by name and by version, and from unknown versions; in each channel,
    and without a channel."""
    channels, held, default = collections.defaultdict(dict), collections.defaultdict(dict), {}
    for blob in blobs:
        if blob["schema"] == "olm.channel":
            channels[blob["package"]][blob["name"]] = blob.get("entries", [])
        elif blob["schema"] == "olm.package":
            default[blob["name"]] = blob.get("defaultChannel")
        elif blob["schema"] == "olm.bundle":
            own = [each["value"]["version"] for each in blob.get("properties", []) if each["type"] == "olm.package"]
            held[blob["package"]][blob["name"]] = own[0] if own else ""
    for package, of_package in channels.items():
        entries = [entry for each in of_package.values() for entry in each]
        names = dict.fromkeys([*held[package], *(n for e in entries for n in [*e.get("skips", []), e.get("replaces")] if n)])
        count = collections.Counter(held[package].get(name) or version_in(name) for name in names)
        for channel in [*of_package, None]:
            base = {"catalog": directory, "package": package, "dependencies": "ignore"}
            base.update({"noChannel": True} if channel is None else {"channel": channel})
            for name in names:
                yield {**base, "from": name}
                version = held[package].get(name) or version_in(name)
                if version and count[version] == 1 and version not in names:
                    yield {**base, "from": name, "text": version}
            for version in strange(filter(None, held[package].values())):
                if version not in count and f"{package}.v{version}" not in names:
                    yield {**base, "from": f"{package}.v{version}", "text": version}


class Comparison:
    def __init__(self, args):
        self.args = args
        self.upstream, self.olmkit = Program(args.upstream), Program(args.answers)
        self.figures, self.different = collections.Counter(), []
        self.end = time.monotonic() + args.minutes * 60 if args.minutes else float("inf")

    def differ(self, what, question, theirs, ours):
        self.figures["different: " + what] += 1
        if len(self.different) < self.args.examples:
            self.different.append((what, question, theirs, ours))

    def paths(self, blobs, directory):
        asked = list(questions(blobs, directory))
        if self.args.most and len(asked) > self.args.most:
            asked = asked[::-(-len(asked) // self.args.most)]
        if not asked:
            return
        theirs = self.upstream.ask(asked)
        if theirs[0]["end"] == "no catalog":
            self.figures["catalogs that opm rejects"] += 1
            return
        ours = self.olmkit.ask(asked)
        self.figures["catalogs"] += 1
        self.figures["packages"] += sum(blob["schema"] == "olm.package" for blob in blobs)
        targets = []
        for number, (question, upstream, own) in enumerate(zip(asked, theirs, ours)):
            self.figures["questions"] += 1
            self.figures["questions without a channel"] += "noChannel" in question
            self.figures["end: " + upstream["end"]] += 1
            self.figures["upgrades"] += len(upstream["chain"]) - 1
            if (upstream["chain"], upstream["end"]) != (own["chain"], own["end"]):
                self.differ("paths", question, upstream, own)
            if self.args.command and number % self.args.command_every == 0:
                self.command(question, upstream)
            if self.args.extra and len(upstream["chain"]) > 2 and upstream["end"] != "cycle":
                at = len(upstream["chain"]) // 2
                targets.append(({**question, "to": upstream["chain"][at]}, upstream["chain"][:at + 1]))
        for (question, chain), own in zip(targets, self.olmkit.ask([question for question, _ in targets])):
            self.figures["questions with a target"] += 1
            if own["chain"] != chain or own["end"] != "settled":
                self.differ("targets", question, chain, own)

    def command(self, question, upstream):
        """The same through the command line."""
        command = [self.args.command, "catalog", "path", question["catalog"], "-p", question["package"], "-o", "json",
                   "--from", question.get("text", question["from"])]
        command += ["--all-channels"] if "noChannel" in question else ["-c", question["channel"]]
        done = subprocess.run(command, capture_output=True, text=True)
        self.figures["questions to the command"] += 1
        try:
            chain = [question["from"], *(step["to"] for step in json.loads(done.stdout)["steps"])]
        except ValueError:
            chain = None
        if chain != upstream["chain"] or done.returncode not in (0, 1):
            self.differ("command", question, upstream, [done.returncode, done.stdout[:500], done.stderr[:500]])

    def drawing(self, directory):
        (theirs,), (ours,) = self.upstream.ask([{"catalog": directory, "draw": True}]), self.olmkit.ask([{"catalog": directory, "draw": True}])
        if theirs.get("error"):
            return
        self.figures["drawings"] += 1
        self.figures["drawings with marked links"] += "linkStyle" in theirs["text"]
        if theirs["text"] != ours["text"]:
            lines = [(a, b) for a, b in zip(theirs["text"].split("\n"), ours["text"].split("\n")) if a != b]
            self.differ("drawings", directory, *(lines[0] if lines else ("length", "length")))

    def catalogs(self, folder):
        number = 0
        while self.figures["catalogs"] < self.args.count and time.monotonic() < self.end:
            directory = os.path.join(folder, f"{self.args.seed}-{number}")
            made = generate.catalog(self.args.seed, number)
            generate.write(made, directory)
            self.paths(list(generate.blobs(made)), directory)
            if self.args.extra:
                self.drawing(directory)
            before = sum(key.startswith("different") for key in self.figures)
            if not before:
                shutil.rmtree(directory)
            number += 1

    def bundles(self):
        number = 0
        while self.figures["bundle sets"] < self.args.count and time.monotonic() < self.end:
            self.index(generate.bundles(self.args.seed, number))
            number += 1

    def operators(self, repositories):
        for repository in repositories:
            for bundles in operators(repository):
                if time.monotonic() > self.end:
                    return
                self.figures["operators"] += 1
                self.figures["bundles"] += len(bundles)
                self.index(bundles)

    def index(self, bundles):
        for mode in ["replaces", "semver"]:
            question = {"bundles": bundles, "mode": mode}
            (theirs,) = self.upstream.ask([question])
            if theirs.get("error"):
                self.figures[f"{mode}: sets that operator-registry rejects"] += 1
                continue
            self.figures["bundle sets"] += mode == "replaces"
            self.figures[f"{mode}: sets"] += 1
            (ours,) = self.olmkit.ask([question])
            # The order in which one call adds bundles is random in replaces-mode, and so is its default channel.
            equal = shown(theirs) == shown(ours) if mode == "semver" else shown(theirs)[0] == shown(ours)[0]
            if not equal:
                self.differ(mode, question, theirs, ours)
            if mode == "replaces":
                (single,) = self.upstream.ask([{**question, "oneByOne": True}])
                if not single.get("error"):
                    self.figures["replaces: sets, added one by one"] += 1
                    if shown(single) != shown(ours):
                        self.differ("replaces, one by one", question, single, ours)

    def real(self, directories):
        for directory in directories:
            if time.monotonic() > self.end:
                return
            text = subprocess.run([self.args.command, "opm", "render", directory, "-o", "json"], capture_output=True, text=True)
            if text.returncode:
                self.figures["directories that cannot be read"] += 1
                continue
            self.paths(list(stream(text.stdout)), directory)
            self.drawing(directory)

    def report(self):
        for name, count in self.figures.items():
            print(f"{count:9} {name}")
        for what, question, theirs, ours in self.different:
            print(f"\n{what}: {json.dumps(question)}\n  upstream: {json.dumps(theirs)}\n  olmkit:   {json.dumps(ours)}")
        return any(name.startswith("different") for name in self.figures)


def operators(argument):
    """The bundles of each operator in a bare git repository, in version order."""
    path, _, commit = argument.partition("@")
    git = ["git", "--git-dir", path]
    names = subprocess.run([*git, "ls-tree", "-r", "-z", commit, "operators/"], capture_output=True, check=True).stdout.decode(errors="replace")
    files = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in filter(None, names.split("\0")):
        meta, name = line.split("\t", 1)
        parts = name.split("/")
        if len(parts) == 5 and (parts[3] == "manifests" and ".clusterserviceversion." in parts[4] or parts[3:] == ["metadata", "annotations.yaml"]):
            files[parts[1]][parts[2]].append(meta.split()[2])
    reader = subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(digest):
        reader.stdin.write((digest + "\n").encode())
        reader.stdin.flush()
        length = reader.stdout.readline().split()[2:]
        data = reader.stdout.read(int(length[0]) + 1) if length else b""
        try:
            return yaml.load(data, Loader=LOADER) or {}
        except (yaml.YAMLError, ValueError):
            return {}

    for operator, versions in sorted(files.items()):
        made = [bundle([read(digest) for digest in digests]) for digests in versions.values()]
        made = [each for each in made if each]
        yield sorted(made, key=lambda each: order(each["version"]))


def order(version):
    """A key that sorts versions. A prerelease is lower than its release."""
    numbers, _, rest = version.split("+")[0].partition("-")
    part = lambda text: (0, int(text), "") if text.isdigit() else (1, 0, text)
    return [part(text) for text in numbers.split(".")], not rest, [part(text) for text in rest.split(".")]


def bundle(documents):
    """The fields that place a bundle in an index, or None if one is missing."""
    csv = next((each for each in documents if each.get("kind") == "ClusterServiceVersion"), None)
    labels = next((each["annotations"] for each in documents if isinstance(each.get("annotations"), dict)), None)
    prefix = "operators.operatorframework.io.bundle."
    if not csv or not labels or not csv.get("spec", {}).get("version"):
        return None
    spec, annotations = csv["spec"], csv["metadata"].get("annotations") or {}
    made = {"name": csv["metadata"]["name"], "version": str(spec["version"]), "channels": str(labels.get(prefix + "channels.v1") or ""),
            "defaultChannel": str(labels.get(prefix + "channel.default.v1") or ""), "replaces": str(spec.get("replaces") or ""),
            "skips": [str(each) for each in spec.get("skips") or []], "skipRange": str(annotations.get("olm.skipRange") or "")}
    return {key: value for key, value in made.items() if value or key in ("name", "version", "channels")}


def shown(answer):
    """Channels without the difference between an absent and an empty field."""
    entry = lambda e: (e["name"], e.get("replaces", ""), tuple(sorted(set(e.get("skips") or []))), e.get("skipRange", ""))
    return {name: sorted(map(entry, entries)) for name, entries in answer["channels"].items()}, answer["defaultChannel"]


def stream(text):
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        blob, at = decoder.raw_decode(text, at)
        yield blob


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", required=True, help="the Go program of this directory")
    parser.add_argument("--answers", required=True, help="the example upgrade_graph of the crate olmkit")
    parser.add_argument("--command", help="olmkit, for `catalog path`")
    parser.add_argument("--command-every", type=int, default=50, help="ask the command every Nth question")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="catalogs or bundle sets that upstream accepts")
    parser.add_argument("--most", type=int, default=0, help="questions for each catalog")
    parser.add_argument("--examples", type=int, default=5)
    parser.add_argument("--minutes", type=float, help="stop after this time, and print the figures so far")
    parser.add_argument("--extra", action="store_true", help="targets and drawings, too")
    parser.add_argument("what", choices=["catalogs", "bundles", "real", "operators"])
    parser.add_argument("directories", nargs="*")
    args = parser.parse_args()
    comparison = Comparison(args)
    print(f"{args.what}, seed {args.seed}" if not args.directories else f"{args.what} of {' '.join(args.directories)[:300]}")
    if args.what == "catalogs":
        with tempfile.TemporaryDirectory(prefix="graph-") as folder:
            comparison.catalogs(folder)
    elif args.what == "bundles":
        comparison.bundles()
    elif args.what == "operators":
        comparison.operators(args.directories)
    else:
        comparison.real(args.directories)
    sys.exit(1 if comparison.report() else 0)


if __name__ == "__main__":
    main()
