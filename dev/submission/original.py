"""The hosted pipeline's own checks, without its services; record.py and changes.py use it.

Stubs, as for the recordings that the tests read: the supported versions of OpenShift come from a table of 2026-08-22, and YAML is read
by libyaml's loader, which is faster than the original's; a file that it refuses, or that has a tab, is read by the original's.
"""

import logging
import os
import re
import sys

import yaml


def _load(stream, load):
    text = stream if isinstance(stream, (str, bytes)) else stream.read()
    if "\t" not in text:
        try:
            return load(text, yaml.CSafeLoader)
        except yaml.YAMLError:
            pass
    return load(text, yaml.SafeLoader)


yaml.safe_load = lambda stream: _load(stream, yaml.load)
yaml.safe_load_all = lambda stream: iter(_load(stream, lambda text, loader: list(yaml.load_all(text, loader))))

from operatorcert import utils  # noqa: E402
from operatorcert.operator_repo.checks import Fail, run_suite  # noqa: E402

SUITES = {"community": ["community", "common"], "certified": ["isv", "common"]}
SDK_CHECKS = ["check_osdk_bundle_validate_operatorhub", "check_osdk_bundle_validate_operator_framework"]
VERSIONS = [f"4.{minor}" for minor in range(22, 11, -1)]
logging.disable(logging.CRITICAL)
# The original prints as it goes; standard output is for the records.
RECORDS, sys.stdout = sys.stdout, sys.stderr


def supported(_, selection):
    """The versions that the original asks a service for; nothing if the service refuses the selection."""
    if not selection:
        return list(VERSIONS)
    one = r"v?(\d+)\.(\d+)"
    match = re.fullmatch(rf"(=?){one}(?:\s*([-,])\s*{one})?", str(selection).strip())
    if not match or (match[1] and match[4]):
        return None
    number = lambda at: (int(match[at]), int(match[at + 1]))
    least, most = number(2), (99, 0)
    if match[1]:
        most = least
    elif match[4] == "-":
        most = number(5)
    elif match[4]:
        least = min(least, number(5))
    return [version for version in VERSIONS if least <= tuple(map(int, version.split("."))) <= most]


utils.get_ocp_supported_versions = supported


def output(suite, check, kind, message, root):
    if message.startswith("Traceback (most recent call last)"):
        message = "TRACEBACK: " + message.strip().splitlines()[-1]
    return {"suite": suite, "check": check, "type": kind, "message": message.replace(str(root), "$REPO")}


def outputs(target, suites, root, skip=()):
    """What the static tests say about one operator, bundle or list of catalogs."""
    return [
        output(suite, result.check, "error" if isinstance(result, Fail) else "warning", result.reason, root)
        for suite in suites
        for result in run_suite([target], f"operatorcert.static_tests.{suite}", skip_tests=list(skip))
    ]


def operators(folder, without, names):
    """The operators of both repositories, without those that a recording has."""
    recorded = set()
    for line in (line for path in without for line in path.open()):
        if '"operator"' in line[:200]:
            head = re.match(r'\{"repo": ?"([^"]+)", ?"operator": ?"([^"]+)"', line)
            recorded.add((head[1], head[2]))
    for repository in SUITES:
        for name in sorted(os.listdir(folder / repository / "operators")):
            is_wanted = (repository, name) not in recorded and (not names or name in names)
            if is_wanted and (folder / repository / "operators" / name).is_dir():
                yield repository, name
