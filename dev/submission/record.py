#!/usr/bin/env python3
"""Records what the hosted pipeline says about operators that the stored recording does not have. live.sh says how to run it.

    record.py FOLDER OPERATORS SEED WITHOUT.jsonl... > records.jsonl

FOLDER has checkouts of community-operators-prod and certified-operators as `community` and `certified`. Of each operator all checks run
on five bundles, with the newest, and those without operator-sdk on fifteen more.
"""

import json
import pathlib
import random
import sys

import original
from operatorcert.operator_repo import OperatorCatalogList, Repo


def records(root, repository, name, chance):
    repo = Repo(root)
    operator, suites = repo.operator(name), original.SUITES[repository]
    head = {"repo": repository, "operator": name}
    yield {**head, "kind": "operator", "outputs": original.outputs(operator, suites, root)}
    bundles = sorted(bundle.operator_version for bundle in operator.all_bundles())
    whole = chance.sample(bundles, min(4, len(bundles)))
    if bundles:
        whole.append(max(operator.all_bundles()).operator_version)
    rest = [version for version in bundles if version not in whole]
    rest = chance.sample(rest, min(15, len(rest)))
    for versions, skip in ((sorted(set(whole)), []), (sorted(rest), original.SDK_CHECKS)):
        for version in versions:
            found = original.outputs(operator.bundle(version), suites, root, skip)
            yield {**head, "kind": "bundle", "bundle": version, "skip_tests": skip, "outputs": found}
    catalogs = [catalog for catalog in sorted(repo.all_catalogs()) if catalog.has(name)]
    catalogs = chance.sample(catalogs, min(4, len(catalogs)))
    if catalogs:
        found = original.outputs(OperatorCatalogList([one.operator_catalog(name) for one in catalogs]), suites, root)
        names = [f"{catalog.catalog_name}/{name}" for catalog in catalogs]
        yield {**head, "kind": "catalogs", "catalogs": names, "outputs": found}


def main():
    folder, count, seed, *without = sys.argv[1:]
    folder, chance = pathlib.Path(folder).resolve(), random.Random(int(seed))
    chosen = list(original.operators(folder, [pathlib.Path(path) for path in without], ()))
    for repository, name in chance.sample(chosen, min(int(count), len(chosen))):
        for record in records(folder / repository, repository, name, chance):
            print(json.dumps(record), file=original.RECORDS, flush=True)


if __name__ == "__main__":
    main()
