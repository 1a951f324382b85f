#!/usr/bin/env python3
"""Makes random pull requests over operators, and records what the hosted pipeline says about them. live.sh says how to run it.

    changes.py FOLDER COUNT SEED WITHOUT.jsonl... > changes.jsonl

A pull request has one to three changes to up to two operators: bundles that are added, edited, renamed and removed, ci.yaml,
release-config.yaml, catalogs, files outside, operators that come and go. A record has the files before and after, the errors and the
result of the change detection, and the outputs of the static tests, as in the stored recording.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import original
import operatorcert.entrypoints.detect_changed_operators as detection
from operatorcert.entrypoints.static_tests import execute_checks
from operatorcert.operator_repo import Repo
from operatorcert.parsed_file import ParserRules, ValidationError

MOST_BYTES = 3_000_000
CI = [
    "",
    "---\n",
    "[]\n",
    "text\n",
    "a: [\n",
    "updateGraph: replaces-mode\n",
    "updateGraph: semver-mode\nreviewers:\n  - a\n",
    "updateGraph: other\n",
    "updateGraph: null\nfbc: {enabled: false}\n",
    "fbc: null\n",
    "fbc:\n  enabled: true\n",
    "fbc:\n  enabled: true\n  version: 0.0.1\n  catalog_mapping:\n  - template_name: a.yaml\n    catalog_names: [v4.17]\n    type: olm.semver\n"
    "  - template_name: b.yaml\n    catalog_names: [v4.17, v4.18]\n    type: olm.template.basic\n",
    "reviewers: [a, b]\nunknown: 1\n",
    "cert_project_id: 1\nmerge: 'no'\n",
]
RELEASE = [
    "",
    "x: 1\n",
    "catalog_templates: []\n",
    "catalog_templates: null\n",
    "catalog_templates:\n- template_name: a.yaml\n  channels: [Fast]\n",
    "catalog_templates:\n- template_name: a.yaml\n  channels: [alpha]\n  replaces: x\n",
    "catalog_templates:\n- template_name: b.yaml\n  channels: [alpha]\n  skipRange: '>=1'\n",
]
CATALOG = [
    "",
    "- 1\n",
    "a: [\n",
    "---\nschema: olm.package\nname: hello\n",
    "schema: olm.bundle\nname: hello.v1\nimage: quay.io/x/y@sha256:aa\nproperties:\n- type: olm.bundle.object\n",
    "schema: olm.bundle\nname: x\nproperties: null\n---\n",
]
LINES = ["\tx: y", "a: [", "---", "x: {}", "- 1", "=", "date: 2026-13-45", "? a", "&a b", "!!set {a}"]
VALUES = [": null", ": 12:30", ": 2024-01-01", ": yes", ": 1.0", ": 0o7", ": 010", ": []", ": ~", ": 'x'", ": 1e3"]


class Tree:
    """The files of a repository, and the changes to them."""

    def __init__(self, files, chance):
        self.files, self.chance = dict(files), chance

    def under(self, folder):
        return sorted(path for path in self.files if path.startswith(folder + "/"))

    def bundle(self, operator):
        """The folder of some bundle."""
        found = {"/".join(path.split("/")[:3]) for path in self.under(f"operators/{operator}") if "/manifests/" in path}
        return self.chance.choice(sorted(found)) if found else None

    def copy(self, old, new, keep=True):
        for path in self.under(old):
            self.files[new + path[len(old) :]] = self.files[path]
            if not keep:
                del self.files[path]

    def remove(self, folder):
        for path in self.under(folder):
            del self.files[path]

    def edit(self, path):
        chance, lines = self.chance, self.files[path].split("\n")
        at = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                lines.append("# changed")
            case 1:
                del lines[at]
            case 2:
                lines = [""]
            case 3:
                lines.insert(at, chance.choice(LINES))
            case 4:
                lines[at] = re.sub(r":\s.*", chance.choice(VALUES), lines[at])
            case 5:
                lines = [line.replace("true", "'true'").replace("false", "no") for line in lines]
        self.files[path] = "\n".join(lines)

    def add_bundle(self, operator):
        if not (old := self.bundle(operator)):
            return
        version = self.chance.choice(["99.0.0", "99.0.1", "v9.9.9", "0.0.1+x", old.split("/")[2] + "-1"])
        new = f"operators/{operator}/{version}"
        self.copy(old, new)
        for path in self.under(new):
            name = re.search(r"^  name: *[\"']?([\w.+-]+)", self.files[path], re.M)
            if "clusterserviceversion" in path and name and self.chance.random() < 0.8:
                text = self.files[path].replace(old.split("/")[2], version)
                if self.chance.random() < 0.6:
                    text = re.sub(r"^  replaces:.*\n", "", text, flags=re.M).rstrip("\n") + f"\n  replaces: {name[1]}\n"
                self.files[path] = text
        # Only new bundles reach the static tests: break some of their files.
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            self.edit(self.chance.choice(self.under(new)))

    def edit_bundle(self, operator):
        if bundle := self.bundle(operator):
            self.edit(self.chance.choice(self.under(bundle)))

    def remove_file(self, operator):
        if bundle := self.bundle(operator):
            del self.files[self.chance.choice(self.under(bundle))]

    def rename_file(self, operator):
        if bundle := self.bundle(operator):
            path = self.chance.choice(self.under(bundle))
            self.files[f"{os.path.dirname(path)}/renamed-{os.path.basename(path)}"] = self.files.pop(path)

    def remove_bundle(self, operator):
        if bundle := self.bundle(operator):
            self.remove(bundle)

    def rename_bundle(self, operator):
        if bundle := self.bundle(operator):
            self.copy(bundle, f"operators/{operator}/" + self.chance.choice(["98.0.0", "0.0.0", "x"]), keep=False)

    def change_ci(self, operator):
        path = f"operators/{operator}/ci.yaml"
        match self.chance.randrange(5):
            case 0:
                self.files.pop(path, None)
            case 1 if path in self.files:
                self.edit(path)
            case _:
                self.files[path] = self.chance.choice(CI)

    def change_release(self, operator):
        if bundle := self.bundle(operator):
            self.files[f"{bundle}/release-config.yaml"] = self.chance.choice(RELEASE)

    def change_catalog(self, operator):
        there = sorted({"/".join(path.split("/")[:3]) for path in self.under("catalogs") if path.count("/") > 2})
        version = self.chance.choice(["v4.9", "v4.17", "v4.21", "v4.22", "v5.0", "latest", "v4.20-rc.1"])
        kind = self.chance.randrange(5) if there else 0
        catalog = self.chance.choice(there) if there else ""
        match kind:
            case 0:
                self.files[f"catalogs/{version}/{operator}/catalog.yaml"] = self.chance.choice(CATALOG)
            case 1:
                self.remove(catalog)
            case 2:
                self.files[f"{catalog}/README.md"] = "x\n"
            case 3:
                self.edit(self.chance.choice(self.under(catalog)))
            case 4:
                self.copy(catalog, f"catalogs/{version}/{catalog.split('/')[2]}", keep=False)

    def change_other(self, operator):
        path = self.chance.choice(
            ["README.md", "config.yaml", ".github/x.yml", "operators/README.md", "catalogs/README.md", "operators/new/notes.txt"]
            + ["catalogs/v4.20/x.txt", f"catalogs/v4.17/{operator}"]
            + [f"operators/{operator}/{name}" for name in ("README.md", "Makefile", "ünï.txt", "a b/c.txt", "catalog-templates/b.yaml")]
        )
        self.files[path] = self.files.get(path, "") + "\n# x\n"

    def remove_operator(self, operator):
        self.remove(f"operators/{operator}")

    def copy_operator(self, operator):
        self.copy(f"operators/{operator}", f"operators/{operator}-new")


CHANGES = {
    Tree.add_bundle: 12,
    Tree.edit_bundle: 4,
    Tree.remove_file: 2,
    Tree.rename_file: 1,
    Tree.remove_bundle: 3,
    Tree.rename_bundle: 3,
    Tree.change_ci: 4,
    Tree.change_release: 2,
    Tree.change_catalog: 5,
    Tree.change_other: 3,
    Tree.remove_operator: 1,
    Tree.copy_operator: 1,
}



def files_of(root, name, chance):
    """An operator with at most five bundles and two catalogs; nothing if it is too large or not all text."""
    folder = root / "operators" / name
    versions = sorted(path.parent for path in folder.glob("*/manifests"))
    left_out = set(versions) - set(chance.sample(versions, min(5, len(versions))))
    catalogs = sorted(root.glob(f"catalogs/*/{name}"))
    taken = [path for path in folder.iterdir() if path not in left_out] + chance.sample(catalogs, min(2, len(catalogs)))
    paths = [path for one in taken for path in ([one] if one.is_file() else one.rglob("*")) if path.is_file()]
    if sum(path.stat().st_size for path in paths) > MOST_BYTES:
        return None
    try:
        return {str(path.relative_to(root)): path.read_bytes().decode("utf-8") for path in paths}
    except UnicodeDecodeError:
        return None


def write(folder, files):
    for entry in folder.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())


def git(folder, *arguments):
    settings = ["user.name=a", "user.email=a@example.com", "core.quotePath=false"]
    settings = [part for setting in settings for part in ("-c", setting)]
    done = subprocess.run(["git", "-C", folder, *settings, *arguments], check=True, capture_output=True)
    return done.stdout.decode()


def answer(head, base, changed, suites):
    """What the pipeline says about a change."""
    found = {"changed_files": sorted(changed)}
    detection.github_pr_affected_files = lambda _: set(changed)
    try:
        repositories = Repo(head), Repo(base)
        results = detection.detect_changes(*repositories, "")
        rules = ParserRules(results, *repositories)
        try:
            rules.validate()
        except ValidationError:
            pass
    except Exception as error:  # the program ends with a traceback
        return {**found, "crash": repr(error)[:200]}
    found["errors"] = [error.replace(str(head), "$REPO") for error in rules.errors]
    try:
        detected = found["detected"] = results.to_dict()
    except Exception as error:
        return {**found, "detected_crash": repr(error)[:200]}
    if not rules.errors and (detected["affected_bundles"] or detected["affected_catalog_operators"]):
        names = [f"operatorcert.static_tests.{suite}" for suite in suites]
        catalogs = ",".join(detected["affected_catalog_operators"])
        result = execute_checks(str(head), detected["operator_name"], detected["bundle_version"], catalogs, names)
        outputs = [
            original.output(one["test_suite"].rsplit(".")[-1], one["check"], one["type"], one["message"], head)
            for one in result["outputs"]
        ]
        found["static"] = {"passed": result["passed"], "outputs": outputs}
    return found


def record(name, before, after, suites):
    with tempfile.TemporaryDirectory() as folder:
        head, base = pathlib.Path(folder) / "head", pathlib.Path(folder) / "base"
        for path in (head, base):
            path.mkdir()
            write(path, before)
        git(head, "init", "-q")
        for state in (before, after):
            write(head, state)
            git(head, "add", "-A", "-f")
            git(head, "commit", "-qm", "x")
        lists = [git(head, "diff", "-z", "--name-only", flag, "HEAD~", "HEAD") for flag in ("--no-renames", "--find-renames")]
        shutil.rmtree(head / ".git")
        every, renamed = ([path for path in text.split("\0") if path] for text in lists)
        expected = {"changes": answer(head, base, every, suites)}
        if every != renamed:
            expected["changes_with_renames"] = answer(head, base, renamed, suites)
    return {"kind": "pr", "name": name, "base": before, "files": after, "suites": suites, "skip_tests": [], "expected": expected}


def main():
    folder, count, seed, *without = sys.argv[1:]
    folder, chance = pathlib.Path(folder).resolve(), random.Random(int(seed))
    chosen = list(original.operators(folder, [pathlib.Path(path) for path in without], ()))
    made = 0
    while made < int(count):
        repository, name = chance.choice(chosen)
        other = chance.choice([one for where, one in chosen if where == repository])
        root = folder / repository
        both = [files_of(root, one, chance) for one in (name, other)]
        if None in both:
            continue
        before = {"config.yaml": (root / "config.yaml").read_text(), **both[0], **both[1]}
        tree = Tree(before, chance)
        for change in chance.choices(list(CHANGES), list(CHANGES.values()), k=chance.choice([1, 1, 2, 2, 3])):
            change(tree, name if chance.random() < 0.85 else other)
        folders = {path.rsplit("/", depth)[0] for path in tree.files for depth in range(1, path.count("/") + 1)}
        if tree.files != before and not folders & set(tree.files) and tree.under("operators"):
            made += 1
            made_up = record(f"{repository}-{seed}-{made}", before, tree.files, original.SUITES[repository])
            print(json.dumps(made_up), file=original.RECORDS, flush=True)


if __name__ == "__main__":
    main()
