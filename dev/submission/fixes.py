"""What `bundle validate --fix` does to many bundles; dev/submission/fixes.sh says how to run it and what it counts.

Everything is compared from outside: findings of both commands, the values and comments of each file as PyYAML reads them, and the
verdict of the real operator-sdk.
"""

import collections
import functools
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import yaml

ADVICE = " does not have status spec. "
# Keys whose values a fix may overwrite, since it corrects their spelling.
SPELLED = {"capabilities", "categories", "minKubeVersion"}


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def findings(olmkit, bundle):
    """Findings of validation and scorecard, as a multiset without lines. A message lists what is wrong, of which a fix may take a part."""
    found = collections.Counter()
    validation = run(olmkit, "bundle", "validate", bundle, "--isolated", "-o", "json", "--select-optional", "suite=operatorframework")
    for finding in json.loads(validation.stdout)["findings"]:
        keys = ("rule", "severity", "object", "path")
        found[tuple(finding.get(key) for key in keys)] += 1
    scorecard = run(olmkit, "scorecard", bundle, "-o", "json")
    # Without an output scorecard refuses the bundle, for a reason that validation finds as well.
    for item in json.loads(scorecard.stdout or '{"items": []}')["items"]:
        for result in item["status"].get("results") or []:
            for kind in ("errors", "suggestions"):
                for text in result.get(kind) or []:
                    if ADVICE not in text:
                        found[("scorecard", result["name"], kind, text)] += 1
    return found


def passes(sdk, bundle, *arguments):
    return run(sdk, "bundle", "validate", bundle, *arguments).returncode == 0


def comments(text):
    """The comments of a YAML text: what the scanner leaves between its tokens."""
    found, end = [], 0
    if "#" not in text:
        return found
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        found += [line.strip() for line in text[end : token.start_mark.index].split("\n") if "#" in line]
        end = max(end, token.end_mark.index)
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            # The comment behind the indicator belongs to the token.
            head = text[token.start_mark.index : token.end_mark.index].split("\n")[0]
            found += [head[head.index("#") :].strip()] if "#" in head else []
    return found


def values(node, path=()):
    """Each scalar with its path, in lists without the index: a fix may insert an item."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from values(value, (*path, str(key)))
    elif isinstance(node, list):
        for value in node:
            yield from values(value, (*path, "*"))
    else:
        is_json = path and path[-1] == "alm-examples" and isinstance(node, str)
        # Examples are also added to an empty text, which is not a list.
        text = json.loads(node.strip() or "[]") if is_json else node
        if text is node:
            yield (path, str(node))
        else:
            yield from values(text, (*path, "JSON"))


def lost(before, after):
    """What a file said and says no more."""
    count = lambda text: collections.Counter(
        value for document in yaml.load_all(text, Loader=yaml.CSafeLoader) for value in values(document)
    )
    gone = count(before) - count(after)
    return [f"{'.'.join(path)}: {value[:60]}" for path, value in gone if path[-1] not in SPELLED]


def texts(bundle):
    """The YAML files of a bundle that are text."""
    read = {}
    for path in sorted(bundle.rglob("*")):
        if path.is_file() and path.suffix in (".yaml", ".yml"):
            read[path.relative_to(bundle)] = path.read_bytes().decode("utf-8", "replace")
    return read


SUITES = [(), ("--select-optional", "suite=operatorframework")]


@functools.cache
def as_it_is(olmkit, sdk, bundle):
    """Findings of a bundle and operator-sdk's verdicts, which do not depend on the flags of a fix."""
    with tempfile.TemporaryDirectory() as folder:
        copied = copy(bundle, folder)
        return findings(olmkit, copied), [passes(sdk, copied, *suite) for suite in SUITES]


def copy(bundle, folder):
    copied = pathlib.Path(folder) / bundle.name
    shutil.copytree(bundle, copied)
    for path in copied.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copied


def check(olmkit, sdk, original, flags, counts):
    """Fixes a copy of one bundle; yields what is wrong with the result."""
    before, passed = as_it_is(olmkit, sdk, original)
    with tempfile.TemporaryDirectory() as folder:
        bundle = copy(original, folder)
        was = texts(bundle)
        first = run(olmkit, "bundle", "validate", bundle, "--isolated", "--fix", *flags)
        if first.returncode not in (0, 1) or "panicked" in first.stderr:
            yield f"--fix ended with {first.returncode}: {first.stderr[-300:]}"
            return
        now = texts(bundle)
        changed = [path for path in was if was[path] != now[path]]
        counts["bundles"] += 1
        counts["bundles changed"] += bool(changed)
        counts["fixes"] += sum(line.startswith("fixed: ") for line in first.stderr.splitlines())
        counts["fixes given up"] += sum(line.startswith("not fixed: ") for line in first.stderr.splitlines())
        after = findings(olmkit, bundle) if changed else before
        counts["findings before"] += before.total()
        counts["findings after"] += after.total()
        for finding in after - before:
            yield f"new finding: {finding}"
        for path in changed:
            try:
                kept, there = comments(was[path]), comments(now[path])
                gone = lost(was[path], now[path])
            except (yaml.YAMLError, ValueError):
                counts["files that PyYAML cannot read"] += 1
                continue
            counts["comments"] += len(kept)
            for comment in (collections.Counter(kept) - collections.Counter(there)).elements():
                yield f"{path}: lost the comment {comment!r}"
            for value in gone:
                yield f"{path}: lost {value}"
        counts["operator-sdk's verdicts"] += len(SUITES)
        if changed:
            for suite, verdict in zip(SUITES, passed):
                new = passes(sdk, bundle, *suite)
                counts["failed before, passed after"] += new and not verdict
                if verdict and not new:
                    yield f"operator-sdk passed it before and fails it now {' '.join(suite)}"
        run(olmkit, "bundle", "validate", bundle, "--isolated", "--fix", *flags)
        for path, text in texts(bundle).items():
            if now.get(path) != text:
                yield f"{path}: a second run changed it"


def main():
    olmkit, sdk, folder, count, seed = sys.argv[1:6]
    bundles = sorted(path.parent for path in pathlib.Path(folder).glob("**/manifests") if (path.parent / "metadata").is_dir())
    chosen = random.Random(int(seed)).sample(bundles, min(int(count), len(bundles)))
    problems = 0
    for flags in ((), ("--unsafe-fixes",)):
        counts = collections.Counter()
        for bundle in chosen:
            for problem in check(olmkit, sdk, bundle, flags, counts):
                problems += 1
                print(f"{bundle.relative_to(folder)} {' '.join(flags)}: {problem}", flush=True)
        print(" ".join(("--fix", *flags)) + ": " + ", ".join(f"{number} {name}" for name, number in counts.items()), flush=True)
    print(f"{problems} problems")
    return problems > 0


if __name__ == "__main__":
    sys.exit(main())
