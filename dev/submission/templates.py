#!/usr/bin/env python3
"""Writes what operator-pipelines makes of catalog templates when it adds a bundle, for a comparison with `repo release`.

    PYTHONPATH=OPERATOR-PIPELINES python3 dev/submission/templates.py REPOSITORY... > cases.jsonl
    SUBMISSION_TEMPLATES=$PWD/cases.jsonl cargo test --workspace --features manifests --lib -- --ignored templates_of_the_pipeline

OPERATOR-PIPELINES is a checkout of redhat-openshift-ecosystem/operator-pipelines with its dependencies installed, REPOSITORY one of
community-operators-prod or certified-operators. Each bundle with a release-config.yaml is added, under an image of its own, to the
template as it is and to one that does not exist yet.
"""

import json
import sys
import tempfile
from pathlib import Path

from operatorcert.entrypoints.add_bundle_to_fbc import BasicTemplate, SemverTemplate
from ruamel.yaml import YAML

IMAGE = "quay.io/test/bundle:new"
KINDS = {"olm.template.basic": BasicTemplate, "olm.semver": SemverTemplate}


class Operator:
    def __init__(self, root, name):
        self.root, self.operator_name = root, name


class Bundle:
    def __init__(self, name):
        self.csv = {"metadata": {"name": name}}


def plain(path):
    with open(path, encoding="utf8") as file:
        return YAML(typ="safe").load(file)


def case(operator, name, entry, mapping, text):
    """Adds the bundle; None stands for an exception."""
    with tempfile.TemporaryDirectory() as folder:
        own = Operator(Path(folder), operator)
        template = KINDS[mapping["type"]](own, **mapping)
        if text is not None:
            template.template_path.write_text(text, encoding="utf8")
        try:
            template.add_new_bundle(entry, IMAGE, Bundle(name))
            template.save()
            expected = plain(template.template_path)
        except Exception:  # what the pipeline does then is a traceback
            expected = None
    return {
        "operator": operator,
        "name": name,
        "image": IMAGE,
        "entry": entry,
        "mapping": mapping,
        "template": text,
        "expected": expected,
    }


def main():
    for repository in sys.argv[1:]:
        for path in sorted(Path(repository).glob("operators/*/*/release-config.yaml")):
            root = path.parent.parent
            config, ci = plain(path), plain(root / "ci.yaml")
            csv = next(path.parent.glob("manifests/*.clusterserviceversion.y*ml"), None)
            if csv is None:
                continue
            name = plain(csv)["metadata"]["name"]
            for entry in config["catalog_templates"]:
                for mapping in ci["fbc"]["catalog_mapping"]:
                    if mapping["template_name"] != entry["template_name"]:
                        continue
                    file = root / "catalog-templates" / entry["template_name"]
                    text = file.read_text(encoding="utf8") if file.exists() else None
                    for template in {text, None}:
                        print(json.dumps(case(root.name, name, entry, mapping, template)))
                    break


if __name__ == "__main__":
    main()
