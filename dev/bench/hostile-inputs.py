#!/usr/bin/env python3
"""Measures the CPU time and memory of commands for inputs that once took minutes or gigabytes.

    dev/bench/hostile-inputs.py OLMKIT [--only WORD]

The goal for a release build is 5 seconds and 512 MB for each input. Exits with 1 if a command exceeds it, crashes, or takes more
than 300 seconds.
"""
import argparse, json, os, resource, signal, struct, sys, tempfile

MOST_SECONDS, MOST_MEGABYTES = 5, 512
CSV = """apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: hello.v%(version)s
  annotations:
    alm-examples: '%(examples)s'
spec:
  version: %(version)s
  displayName: hello
  customresourcedefinitions:
    owned: [{name: widgets.example.com, kind: Widget, version: v1}]
  install:
    strategy: deployment
    spec:
      deployments: []
      clusterPermissions: %(permissions)s
"""
ANNOTATIONS = """annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
"""


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def definition(path, versions, storage=0):
    made = [{"name": f"v{n + 1}", "served": True, "storage": n == storage, "schema": {"openAPIV3Schema": schema}} for n, schema in enumerate(versions)]
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    value = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
             "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": made}}
    write(path, json.dumps(value))


def bundle(folder, version="1.0.0", examples="[]", permissions="[]"):
    write(f"{folder}/manifests/hello.clusterserviceversion.yaml", CSV % {"version": version, "examples": examples, "permissions": permissions})
    write(f"{folder}/metadata/annotations.yaml", ANNOTATIONS)


def properties(prefix, count):
    return {"type": "object", "properties": {f"{prefix}{n}": {"type": "string"} for n in range(count)}}


def permissions(count):
    words = lambda prefix: [f"{prefix}{n}" for n in range(count)]
    return json.dumps([{"serviceAccountName": "x", "rules": [{"apiGroups": words("g"), "resources": words("r"), "verbs": words("v")}]}])


def examples(count, spec):
    return json.dumps([{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{n}"}, "spec": spec} for n in range(count)])


def inputs():
    """Name, function that writes the input, command."""
    rules = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "items": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 100}}},
        "x-kubernetes-validations": [{"rule": "self.items.all(a, self.items.all(b, a == b || a != b))"}]}}}
    patterns = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        f"p{n}": {"type": "string", "pattern": "^([a-z0-9]{1,200}\\.){1,50}$"} for n in range(1000)}}}}

    def diff_of_permissions(count):
        bundle("old", "1.0.0")
        bundle("new", "1.0.1", permissions=permissions(count))

    def with_examples(schema, made):
        bundle("bundle", examples=made)
        definition("bundle/manifests/widgets.yaml", [schema])

    def repository(ci):
        bundle("operators/hello/1.0.0")
        write("operators/hello/ci.yaml", ci)

    def lock(packages, dependencies):
        names = [f"p{n}" for n in range(packages)]
        listed = "".join(f' "{name}",\n' for name in names[:dependencies])
        header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        with open("operator", "wb") as file:
            file.write(header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 200, 200, 0x1000) + bytes(80))
        write("Cargo.lock", "version = 4\n" + "".join(
            f'\n[[package]]\nname = "{name}"\nversion = "1.0.0"\ndependencies = [\n{listed}]\n' for name in names))

    def large_crd():
        bundle("bundle")
        definition("bundle/manifests/widgets.yaml", [properties("a", 480000)])

    def two_definitions(old, new):
        definition("old.yaml", old)
        definition("new.yaml", new)

    project = "domain: example.com\nlayout:\n- rust.kube.rs/v1\nprojectName: hello\nversion: \"3\"\nresources:\n"
    resource_text = "- api: {crdVersion: v1, namespaced: true}\n  group: g\n  kind: K%d\n  version: v1\n"
    yield "permissions of 600 groups, resources and verbs", lambda: diff_of_permissions(600), "bundle diff old new"
    yield "permissions of 200 groups, resources and verbs", lambda: diff_of_permissions(200), "bundle diff old new"
    yield "400 examples with a costly rule", lambda: with_examples(rules, examples(400, {"items": ["x" * 99] * 100})), "bundle validate bundle"
    yield "examples of 2 MB", lambda: with_examples(rules, examples(170, {"items": ["x" * 99] * 100})), "bundle validate bundle"
    yield "1,000 patterns", lambda: with_examples(patterns, examples(1, {f"p{n}": "a." * 40 for n in range(1000)})), "bundle validate bundle"
    yield "156 kB of brackets in ci.yaml", lambda: repository("[" * 78000 + "]" * 78000), "repo check --repo ."
    yield "16 MB of brackets in ci.yaml", lambda: repository("[" * (8 << 20) + "]" * (8 << 20)), "repo check --repo ."
    yield "300 versions", lambda: two_definitions([properties("a", 10)] * 300, [properties("b", 10)] * 300), "crd diff old.yaml new.yaml"
    yield "100,000 renamed properties", lambda: two_definitions([properties("a", 100000)], [properties("b", 100000)]), "crd diff old.yaml new.yaml"
    yield "two CRDs of 15 MB", lambda: two_definitions([properties("a", 480000)], [properties("b", 480000)]), "crd diff old.yaml new.yaml"
    yield "a CRD of 16 MB", lambda: large_crd(), "bundle validate bundle"
    yield "a lock file of 1,500 packages with 1,500 dependencies", lambda: lock(1500, 1500), "image build operator operator -t r.example.com/x:v1 -o oci:out --sbom Cargo.lock:p0"
    yield "PROJECT with 100,000 resources", lambda: write("PROJECT", project + "".join(resource_text % n for n in range(100000))), "update --dry-run"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("olmkit")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    program, failed = os.path.abspath(args.olmkit), False
    print("| input | command | seconds of CPU | memory | exit |\n|---|---|---|---|---|")
    for name, make, command in inputs():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            make()
            pid = os.fork()
            if pid == 0:
                out = os.open("out", os.O_WRONLY | os.O_CREAT)
                os.dup2(out, 1)
                os.dup2(out, 2)
                resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
                # The shell is small. The memory of this process would count otherwise.
                os.execv("/bin/sh", ["sh", "-c", "exec \"$0\" \"$@\"", program, *command.split()])
            _, status, usage = os.wait4(pid, 0)
            os.chdir("/")
            seconds, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
            code = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            bad = seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES or code not in (0, 1, 2)
            failed |= bad
            print(f"| {name} | `{command}` | {seconds:.1f} | {megabytes:.0f} MB | {code}{' (over the goal)' if bad else ''} |", flush=True)
    sys.exit(failed)


main()
