#!/usr/bin/env python3
"""Random edits of the objects in real bundles: the API server's answer beside the findings of olmkit.

    kube-testbed run --olm -- dev/mutate-objects.py --tool PROGRAM [--seed N] [--edits N] BUNDLE...

BUNDLE is a directory that contains bundles, or GIT-DIR@COMMIT of an operator repository, of which the newest bundle of each operator
counts. PROGRAM is the example `admission` of crates/olmkit: it reads one object a line and prints its rejections.

Each edit changes one value of a ClusterServiceVersion, of one of its Deployments or of another object of a built-in kind. The server
is asked with dryRun=All: about the object, and about each Deployment that OLM would create from the ClusterServiceVersion. "missed": the
server rejects the edit and olmkit does not. "false": olmkit rejects it and the server does not. Objects that the server rejects unedited
are compared too, and not edited. Exit 0 only if nothing is false and at most 1 % of the edits are missed.
"""
import argparse, base64, copy, glob, http.client, json, os, random, re, ssl, subprocess, sys, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlparse

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PATHS = {
    ("v1", "ConfigMap"): "/api/v1/namespaces/default/configmaps",
    ("v1", "Secret"): "/api/v1/namespaces/default/secrets",
    ("v1", "Service"): "/api/v1/namespaces/default/services",
    ("v1", "ServiceAccount"): "/api/v1/namespaces/default/serviceaccounts",
    ("networking.k8s.io/v1", "NetworkPolicy"): "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    ("policy/v1", "PodDisruptionBudget"): "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    ("rbac.authorization.k8s.io/v1", "Role"): "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    ("scheduling.k8s.io/v1", "PriorityClass"): "/apis/scheduling.k8s.io/v1/priorityclasses",
}
CSV = "/apis/operators.coreos.com/v1alpha1/namespaces/default/clusterserviceversions"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STRINGS = ["", "x", "X", "Bad Name", "a_b", "a.b", "-a", "1x", "0", "1", "true", "None", "a" * 64, "a" * 254, "ä", "1Gi", "200m", "-1", "50%",
           "150%", "/abs", "../up", "Always", "always", "TCP", "tcp", "443", "1.5", "a/b", "a/b/c", "*", "None ", "8080tcp", "Localhost"]
NUMBERS = [0, 1, -1, 2, 80, 443, 511, 512, 65535, 65536, 99999, 2147483647, 2147483648, 10**19, 1.5, 1000000001]


class Server:
    """A connection for each thread."""

    def __init__(self):
        config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urlparse(cluster["server"])
        self.context = ssl._create_unverified_context()
        self.headers = {"Content-Type": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = "Bearer " + user["token"]
        else:
            folder = tempfile.mkdtemp()
            files = []
            for name in ("client-certificate", "client-key"):
                data = base64.b64decode(user[name + "-data"]) if name + "-data" in user else open(user[name], "rb").read()
                files.append(os.path.join(folder, name))
                open(files[-1], "wb").write(data)
            self.context.load_cert_chain(*files)
        self.local = threading.local()

    def post(self, path, value):
        """The reason of a rejection, or the empty string, and the object as the server would store it."""
        body = json.dumps(value)
        for attempt in range(5):
            try:
                if not hasattr(self.local, "connection"):
                    self.local.connection = http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.context, timeout=60)
                self.local.connection.request("POST", path + "?dryRun=All&fieldValidation=Ignore", body, self.headers)
                answer = self.local.connection.getresponse()
                text = answer.read()
                if answer.status in (429, 500, 502, 503, 504):
                    continue
                if answer.status == 409:
                    return "", value
                try:
                    stored = json.loads(text)
                except ValueError:
                    return text[:200].decode(errors="replace"), None
                return ("", stored) if answer.status < 300 else (stored.get("message", "?"), None)
            except (OSError, http.client.HTTPException):
                self.local.__dict__.pop("connection", None)
        sys.exit("the API server does not answer")

    def ask(self, value):
        if value.get("kind") != "ClusterServiceVersion":
            return self.post(PATHS[(value["apiVersion"], value["kind"])], value)[0]
        why, stored = self.post(CSV, value)
        if why:
            return why
        for own in stored["spec"]["install"].get("spec", {}).get("deployments") or []:
            metadata = {"name": own.get("name"), "labels": own.get("label") or {}}
            why = self.post(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": own.get("spec")})[0]
            if why:
                return "Deployment: " + why
        return ""


def plain(value):
    """As JSON has it: YAML's dates are strings, keys are strings."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else json.dumps(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def bundles(arguments):
    """(name, [file texts]) of each bundle."""
    for argument in arguments:
        path, _, commit = argument.partition("@")
        if commit:
            yield from repository(path, commit)
            continue
        found = sorted(os.path.dirname(m) for m in glob.glob(os.path.join(path, "**", "manifests"), recursive=True))
        for bundle in found:
            files = sorted(glob.glob(os.path.join(bundle, "manifests", "*")))
            yield bundle, [open(f, "rb").read() for f in files if os.path.isfile(f)]


def repository(path, commit):
    """The newest bundle of each operator in a bare git repository."""
    git = lambda *words: subprocess.run(["git", "--git-dir", path, *words], capture_output=True, check=True).stdout
    versions = {}
    for name in git("ls-tree", "-r", "--name-only", "-z", commit, "operators/").decode(errors="replace").split("\0"):
        parts = name.split("/")
        if len(parts) == 5 and parts[3] == "manifests":
            versions.setdefault(parts[1], {}).setdefault(parts[2], []).append(name)
    order = lambda version: [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[.+-]", version.lstrip("v"))]
    for operator, known in sorted(versions.items()):
        version = max(known, key=order)
        yield f"{operator}/{version}", [git("show", f"{commit}:{name}") for name in known[version]]


def objects(files):
    for data in files:
        try:
            value = plain(yaml.load(data, Loader=LOADER))
        except (yaml.YAMLError, ValueError, TypeError):
            continue
        if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
            continue
        if value.get("kind") == "ClusterServiceVersion":
            value["metadata"]["annotations"] = {k: v for k, v in (value["metadata"].get("annotations") or {}).items() if k != "alm-examples"}
            # OLM writes the version that it knows, whatever the bundle has.
            value["apiVersion"] = "operators.coreos.com/v1alpha1"
            value["spec"].pop("icon", None) if isinstance(value.get("spec"), dict) else None
        elif (value.get("apiVersion"), value.get("kind")) not in PATHS:
            continue
        value["metadata"].pop("namespace", None)
        yield value


def places(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield path + (key,)
        yield from places(child, path + (key,))


def edit(value, pick):
    """Changes one value of a copy; None if the edit changes nothing."""
    value = copy.deepcopy(value)
    deep = [p for p in places(value) if p[0] not in ("apiVersion", "kind", "status")]
    if not deep:
        return None
    # Deployments have many values: half of the edits of a ClusterServiceVersion are outside.
    outside = [p for p in deep if "deployments" not in p]
    path = pick.choice(outside if outside and pick.random() < 0.5 else deep)
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    old = parent[path[-1]]
    kinds = ["remove", "null", "type", "type", "value", "value", "value", "repeat", "add"]
    what = pick.choice(kinds)
    if what == "remove":
        del parent[path[-1]]
    elif what == "null":
        parent[path[-1]] = None
    elif what == "type":
        parent[path[-1]] = pick.choice([7, "text", True, ["a"], {"a": "b"}, [], {}, 1.5, [1], {"a": 1}, [None]])
    elif what == "repeat":
        if not isinstance(parent, list):
            return None
        parent.insert(path[-1], copy.deepcopy(old))
    elif what == "add":
        if not isinstance(old, dict):
            return None
        other = pick.choice([v for p in deep if isinstance(p[-1], str) for v in [p[-1]]])
        old[other] = pick.choice(["x", 1, True, [], {}, {"a": "b"}])
    elif isinstance(old, str):
        parent[path[-1]] = pick.choice(STRINGS + [old + " ", old.upper(), old.capitalize(), old + "-", old * 40])
    elif isinstance(old, bool):
        parent[path[-1]] = not old
    elif isinstance(old, (int, float)):
        parent[path[-1]] = pick.choice(NUMBERS + [str(old)])
    else:
        parent[path[-1]] = type(old)()
    after = parent[path[-1]] if what not in ("remove", "repeat") else None
    if what not in ("remove", "repeat", "add") and after == old and type(after) is type(old):
        return None
    return f"{what} {'.'.join(map(str, path))}" + (f" = {json.dumps(after)[:60]}" if after is not None else ""), value


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tool", required=True)
    ap.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    ap.add_argument("--edits", type=int, default=20000)
    ap.add_argument("--show", type=int, default=60)
    ap.add_argument("--threads", type=int, default=8)
    ap.add_argument("bundles", nargs="+")
    a = ap.parse_args()
    print(f"seed {a.seed}, {a.edits} edits, {' '.join(a.bundles)[:300]}", flush=True)
    pick, server = random.Random(a.seed), Server()
    tool = lambda values: [json.loads(line) for line in subprocess.run([a.tool], input="\n".join(map(json.dumps, values)), capture_output=True,
                                                                      text=True, check=True).stdout.splitlines()]
    whole = [(name, value) for name, files in bundles(a.bundles) for value in objects(files)]
    pool = ThreadPoolExecutor(a.threads)
    counts = {"objects": len(whole), "edits": 0, "rejected": 0, "missed": 0, "false": 0, "unedited missed": 0, "unedited false": 0}
    shown = 0

    def compare(names, values, prefix):
        nonlocal shown
        for name, value, why, found in zip(names, values, pool.map(server.ask, values), tool(values)):
            counts["rejected"] += bool(why) and not prefix
            fault = "missed" if why and not found else "false" if found and not why else ""
            if fault:
                counts[prefix + fault] += 1
                if shown < a.show:
                    shown += 1
                    print(f"{prefix}{fault}: {value['kind']} {name}: {why[:300] or found[:2]}", flush=True)
            yield bool(why)

    fine = [pair for pair, bad in zip(whole, compare([n for n, _ in whole], [v for _, v in whole], "unedited ")) if not bad]
    print(f"{len({n for n, _ in whole})} bundles, {len(whole)} objects, {len(whole) - len(fine)} of them rejected unedited", flush=True)
    by_kind = {}
    for name, value in fine:
        by_kind.setdefault(value["kind"], []).append((name, value))
    while counts["edits"] < a.edits and fine:
        batch = []
        while len(batch) < min(500, a.edits - counts["edits"]):
            kind = "ClusterServiceVersion" if pick.random() < 0.5 and "ClusterServiceVersion" in by_kind else pick.choice(sorted(by_kind))
            name, value = pick.choice(by_kind[kind])
            made = edit(value, pick)
            if made:
                batch.append((f"{name}: {made[0]}", made[1]))
        counts["edits"] += len(batch)
        list(compare([n for n, _ in batch], [v for _, v in batch], ""))
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    sys.exit(counts["false"] + counts["unedited false"] > 0 or counts["missed"] * 100 > counts["edits"])


main()
