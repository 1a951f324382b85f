#!/usr/bin/env python3
"""Prints the facts of OLM's ClusterServiceVersion schema that Go's types lack, as crates/olmkit/src/admission/csv.txt stores them.

    dev/csv-schema.py > crates/olmkit/src/admission/csv.txt
    dev/csv-schema.py --check

Reads the CRD of the pinned OLM release from Go's module cache and compares it with crates/go/src/structs/structs*.txt. The facts of
one Go type must be equal wherever the schema uses the type.
"""
import json, os, subprocess, sys

import yaml

OLM = "v0.46.0"
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "crates", "olmkit", "src")


def structs():
    """Type name -> {JSON name: type}, with embedded structs flattened."""
    raw = {}
    folder = os.path.join(here, "..", "crates", "go", "src", "structs")
    for name in ("structs.txt", "structs-0.36.txt"):
        for line in open(os.path.join(folder, name)):
            if not line.startswith(" "):
                current = raw[line.split(" ", 1)[0]] = []
            else:
                field, _, kind = line.strip().partition(" ")
                current.append((field.rstrip("?"), kind))

    def flat(key):
        fields = {}
        for name, kind in raw[key]:
            if name.startswith("<"):
                fields.update({k: v for k, v in flat(kind.lstrip("*")).items() if k not in fields})
            else:
                fields[name] = kind
        return fields

    return {key: flat(key) for key in raw}


def walk(schema, kind, types, facts):
    """Notes the facts of a schema node whose Go type is `kind`."""
    kind = kind.lstrip("*")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if kind.startswith("["):
        walk(schema["items"], kind.split("]", 1)[1], types, facts)
    elif kind.startswith("{"):
        walk(schema["additionalProperties"], kind.split("}", 1)[1], types, facts)
    elif kind in types and "properties" in schema:
        properties = schema["properties"]
        defaulted = {name for name, node in properties.items() if "default" in node}
        required = sorted(set(schema.get("required", [])) - defaulted)
        fields = {name: field_facts(node, types[kind].get(name)) for name, node in properties.items()}
        fields = {name: fact for name, fact in fields.items() if fact}
        block = (required, fields)
        if facts.setdefault(kind, block) != block:
            sys.exit(f"{kind} has two schemas: {facts[kind]} and {block}")
        for name, node in properties.items():
            if name in types[kind] and not (kind == "ClusterServiceVersion" and name in ("metadata", "status")):
                walk(node, types[kind][name], types, facts)


def field_facts(node, kind):
    """The facts of one field, as words."""
    words = []
    if node.get("x-kubernetes-list-type") == "set":
        words.append("set")
    if node.get("x-kubernetes-list-type") == "map":
        items = node["items"]["properties"]
        default = lambda key: f"={items[key]['default']}" if items[key].get("default") else ""
        words.append("keys:" + ",".join(key + default(key) for key in node["x-kubernetes-list-map-keys"]))
    if "default" in node:
        words.append("default")
    if node.get("x-kubernetes-preserve-unknown-fields"):
        words.append("open")
    if "minimum" in node:
        words.append(f"range:{node['minimum']}-{node['maximum']}")
    if "maxLength" in node:
        words.append(f"most:{node['maxLength']}")
    if "enum" in node:
        words.append("enum:" + ",".join(node["enum"]))
    if node.get("format") == "byte":
        words.append("base64")
    elif kind is None or kind.lstrip("*").startswith("!Raw") or kind.lstrip("*") == "!OperatorVersion":
        words.append(node["type"])
    return " ".join(words)


def text():
    module = f"github.com/operator-framework/operator-lifecycle-manager@{OLM}"
    found = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=True, cwd="/")
    path = os.path.join(json.loads(found.stdout)["Dir"], "deploy/chart/crds/0000_50_olm_00-clusterserviceversions.crd.yaml")
    crd = yaml.load(open(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    facts = {}
    walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "ClusterServiceVersion", structs(), facts)
    lines = []
    for kind, (required, fields) in sorted(facts.items()):
        if required or fields:
            lines.append(" ".join([kind] + ["!" + name for name in required]))
            lines += [f" {name} {fact}" for name, fact in sorted(fields.items())]
    return f"# OLM {OLM}. Printed by dev/csv-schema.py.\n" + "\n".join(lines) + "\n"


made = text()
if sys.argv[1:] == ["--check"]:
    if made != open(os.path.join(root, "admission", "csv.txt")).read():
        sys.exit("error: crates/olmkit/src/admission/csv.txt is not what dev/csv-schema.py prints")
else:
    sys.stdout.write(made)
