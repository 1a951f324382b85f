#!/usr/bin/env python3
"""Prints the facts of OLM's ClusterServiceVersion schema that Go's types lack, as crates/olmkit/src/admission/csv.txt stores them.

    dev/csv-schema.py > crates/olmkit/src/admission/csv.txt
    dev/csv-schema.py --check

Reads the CRD of the pinned OLM release from Go's module cache and compares it with crates/go/src/structs/structs*.txt. The facts of
one Go type must be equal wherever the schema uses the type. A fact that older releases lack ends with the first release that has it:
`keys:name@0.29`. Fields that older releases lack count as equal, because the API server drops them there.
"""
import json, os, subprocess, sys

import yaml

OLM = "v0.46.0"
# Older releases, each with the version of github.com/operator-framework/api in its go.mod, which has the CRD. The schemas from 0.22
# to 0.28 reject the same values, and so do those from 0.29 on.
OLDER = [("0.28", "v0.23.0"), ("0.29", "v0.27.0")]
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


def walk(schema, kind, types, facts, known):
    """Notes the facts of a schema node whose Go type is `kind`."""
    kind = kind.lstrip("*")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if kind.startswith("["):
        walk(schema["items"], kind.split("]", 1)[1], types, facts, known)
    elif kind.startswith("{"):
        walk(schema["additionalProperties"], kind.split("}", 1)[1], types, facts, known)
    elif kind in types and "properties" in schema:
        properties = schema["properties"]
        known.update((kind, name) for name in properties)
        defaulted = {name for name, node in properties.items() if "default" in node}
        required = sorted(set(schema.get("required", [])) - defaulted)
        fields = {name: field_facts(node, types[kind].get(name)) for name, node in properties.items()}
        fields = {name: fact for name, fact in fields.items() if fact}
        block = (required, fields)
        if facts.setdefault(kind, block) != block:
            sys.exit(f"{kind} has two schemas: {facts[kind]} and {block}")
        for name, node in properties.items():
            if name in types[kind] and not (kind == "ClusterServiceVersion" and name in ("metadata", "status")):
                walk(node, types[kind][name], types, facts, known)


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


def directory(module):
    found = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=True, cwd="/")
    return json.loads(found.stdout)["Dir"]


def facts_of(path):
    """The facts of a CRD, and its fields: (type, field)."""
    crd = yaml.load(open(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    facts, fields = {}, set()
    walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "ClusterServiceVersion", structs(), facts, fields)
    return facts, fields


def since(kind, name, word, older):
    """The first release that has a fact of a field, empty for all."""
    first = ""
    for (release, _), (facts, fields) in zip(OLDER, older):
        has = (kind, name) not in fields or word in facts[kind][1].get(name, "").split(" ")
        if not has and first:
            sys.exit(f"OLM {release} lacks a fact of {first}: {kind} {name} {word}")
        if not has:
            first = None
        elif first is None:
            first = release
    if first is None:
        sys.exit(f"no older release has this fact, add one to OLDER: {kind} {name} {word}")
    return first


def text():
    olm = directory(f"github.com/operator-framework/operator-lifecycle-manager@{OLM}")
    facts, _ = facts_of(os.path.join(olm, "deploy/chart/crds/0000_50_olm_00-clusterserviceversions.crd.yaml"))
    api = [directory(f"github.com/operator-framework/api@{version}") for _, version in OLDER]
    older = [facts_of(os.path.join(path, "crds/operators.coreos.com_clusterserviceversions.yaml")) for path in api]
    lines = []
    for kind, (required, fields) in sorted(facts.items()):
        for (release, _), (before, known) in zip(OLDER, older):
            kept = sorted(name for name in required if (kind, name) in known)
            if kind in before and [name for name in before[kind][0] if (name not in fields or "default" not in fields[name])] != kept:
                sys.exit(f"OLM {release} requires other fields of {kind}: {before[kind][0]}, not {kept}")
        if required or fields:
            lines.append(" ".join([kind] + ["!" + name for name in required]))
        for name, words in sorted(fields.items()):
            # `default` rejects nothing.
            first = {word: since(kind, name, word, older) for word in words.split(" ") if word != "default"}
            marked = [word + (f"@{first[word]}" if first.get(word) else "") for word in words.split(" ")]
            lines.append(f" {name} {' '.join(marked)}")
    return f"# OLM {OLM}. Printed by dev/csv-schema.py.\n" + "\n".join(lines) + "\n"


made = text()
if sys.argv[1:] == ["--check"]:
    if made != open(os.path.join(root, "admission", "csv.txt")).read():
        sys.exit("error: crates/olmkit/src/admission/csv.txt is not what dev/csv-schema.py prints")
else:
    sys.stdout.write(made)
