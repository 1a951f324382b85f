"""Random file-based catalogs and bundle sets with odd upgrade graphs. The same seed gives the same ones."""
import json
import os
import random

CHANNELS = ["stable", "candidate", "fast", "v1", "alpha"]
PRE_RELEASES = ["-alpha.1", "-rc.1", "-rc.2", "-0", "-beta"]
BUILDS = ["+1", "+2", "+build.5", "+202401", "+1.1"]


def blobs(catalog):
    """The blobs of a catalog: {package: {default, bundles: {name: {version, properties}}, channels: {name: [entry]}}}."""
    for package, content in catalog.items():
        yield {"schema": "olm.package", "name": package, "defaultChannel": content["default"]}
        for name, entries in content["channels"].items():
            yield {"schema": "olm.channel", "package": package, "name": name, "entries": entries}
        for name, bundle in content["bundles"].items():
            own = {"type": "olm.package", "value": {"packageName": package, "version": bundle["version"]}}
            image = f"r.example.com/{name.lower()}:1"
            yield {"schema": "olm.bundle", "package": package, "name": name, "image": image,
                   "properties": [own, *bundle["properties"]]}


def write(catalog, directory):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "catalog.json"), "w") as file:
        file.writelines(json.dumps(blob) + "\n" for blob in blobs(catalog))


def versions(rng, count, ascending=False):
    """Versions that mostly ascend, some with pre-release and build metadata, some that differ in build metadata only."""
    numbers, found = [rng.choice([0, 1, 1]), rng.randrange(3), 0], []
    while len(found) < count:
        text = ".".join(map(str, numbers))
        if rng.random() < 0.12:
            text += rng.choice(PRE_RELEASES)
        found.append(text + (rng.choice(BUILDS) if rng.random() < 0.1 else ""))
        if rng.random() < 0.06 and text + "+7" not in found:
            found.append(text + "+7")
        part = rng.choice([0, 1, 1, 2, 2, 2])
        numbers[part] += 1
        numbers[part + 1:] = [0] * (2 - part)
    found = found[:count]
    if rng.random() < 0.1 and not ascending:
        rng.shuffle(found)
    return found


def skip_range(rng, known, own):
    plain, low, other = own.split("+")[0], rng.choice(known).split("+")[0], rng.choice(known).split("+")[0]
    usual = [f"<{plain}", f">={low} <{plain}", f">=0.0.1 <{plain}"]
    odd = [f"<={plain}", f">={low}", f">{plain}", f"{other} || <{plain}", f"!{other}", "1.x", "0.x || <1.2.0", f"!={other} <{plain}", "*",
           f">={low} <{other}", f"<{plain}-0", "<2.x", f"=={other}", f">={low}-0 <{plain}", "~1.1", "not a range", f">= {low} < {plain}"]
    return rng.choice(usual if rng.random() < 0.7 else odd)


def channel(rng, names, version, never):
    """Entries over names from old to new: a chain with extra skips, ranges, gaps and seldom a wrong edge."""
    known = list(version.values())
    style = rng.choice(["chain", "minor", "head", "layers", "mixed", "mixed", "tangle"])
    entries = []
    for at, name in enumerate(names):
        entry, older = {"name": name}, names[:at]
        if style == "minor":
            same = [o for o in older if version[o].split(".")[:2] == version[name].split(".")[:2]]
            before = [o for o in older if o not in same]
            entry.update({"skips": same} if same else {}, **({"replaces": before[-1]} if before else {}))
        elif style == "head" and at == len(names) - 1 and older:
            entry["skips"] = list(older)
        elif style == "layers" and older:
            # Each entry skips the one below, the head some more.
            entry["skips"] = [older[-1], *rng.sample(older[:-1], rng.randint(0, len(older) - 1))] if at == len(names) - 1 else [older[-1]]
        elif style in ("chain", "mixed") and older:
            back = 1 if style == "chain" else rng.randint(1, min(3, len(older)))
            entry["replaces"] = older[-back]
            skips = older[len(older) - back + 1:]
            if style == "mixed" and rng.random() < 0.3:
                skips = [*skips, *(o for o in rng.sample(older, rng.randint(1, len(older))) if o not in skips)]
            entry.update({"skips": skips} if skips else {})
        elif style == "tangle":
            if names and rng.random() < 0.8:
                entry["replaces"] = rng.choice(names)
            if rng.random() < 0.5:
                entry["skips"] = rng.sample(names, rng.randint(1, len(names)))
        if not older and rng.random() < 0.4:
            entry["replaces"] = rng.choice(never)
        if rng.random() < 0.2:
            entry["skips"] = [*entry.get("skips", []), rng.choice(never)]
        if rng.random() < 0.3:
            entry["skipRange"] = skip_range(rng, known, version[name])
        entries.append(entry)
    if style == "mixed" and len(entries) > 3 and rng.random() < 0.4:
        # Cut the chain in the middle. The head skips the rest, so that no entry is stranded. Sometimes the rest is a cycle.
        cut = rng.randrange(1, len(entries) - 1)
        rest = entries[:cut]
        if rng.random() < 0.5:
            del entries[cut]
        else:
            rest[0]["replaces"] = rest[-1]["name"]
        entries[-1]["skips"] = sorted({*entries[-1].get("skips", []), *(e["name"] for e in rest)})
    if rng.random() < 0.3:
        rng.shuffle(entries)
    return entries


def package(rng, name, others):
    known = versions(rng, rng.choice([1, 2, 3, 4, 4, 5, 6, 7, 9, 14]))
    separator, version = rng.choice([".v"] * 6 + [".", "-v"]), {}
    for text in known:
        bundle = name + separator + text.replace("+", "-")
        if rng.random() < 0.03:
            bundle = f"{name}-{chr(97 + len(version))}"
        elif rng.random() < 0.03:
            bundle = f"{name}.v7.7.{len(version)}"
        version[bundle] = text
    names = list(version)
    gone = rng.sample(names, rng.randint(0, len(names) // 4))
    never = [*gone, *(f"{name}.v9.9.{n}" for n in range(2)), f"{name}-old"]
    kept = [n for n in names if n not in gone]
    channels = {}
    for each in rng.sample(CHANNELS, rng.choice([1, 1, 2, 2, 3])):
        chosen = [n for n in kept if rng.random() < 0.8] or kept[-1:]
        channels[each] = channel(rng, chosen, version, never)
    held = {entry["name"] for entries in channels.values() for entry in entries}
    bundles = {}
    for bundle in (n for n in names if n in held):
        properties = [{"type": "olm.deprecated", "value": {}}] if rng.random() < 0.04 else []
        if others and rng.random() < 0.1:
            required = {"packageName": rng.choice(others), "versionRange": rng.choice([">=0.0.0", "<1.0.0"])}
            properties.append({"type": "olm.package.required", "value": required})
        bundles[bundle] = {"version": version[bundle], "properties": properties}
    return {"default": rng.choice(list(channels)), "bundles": bundles, "channels": channels}


def catalog(seed, number):
    rng, made = random.Random(f"catalog {seed}/{number}"), {}
    for name in ["shop", "cart"][:rng.choice([1, 1, 1, 2])]:
        made[name] = package(rng, name, list(made))
    return made


def bundles(seed, number):
    """Bundles for an index, from low to high versions: mostly chains, with skips, gaps and bundles that nothing reaches."""
    rng = random.Random(f"bundles {seed}/{number}")
    known = versions(rng, rng.choice([2, 3, 4, 5, 6, 8, 10]), ascending=True)
    names = [f"shop.v{text.replace('+', '-')}" for text in known]
    channels = rng.sample(CHANNELS, rng.choice([1, 1, 2, 3]))
    made = []
    for at, (name, text) in enumerate(zip(names, known)):
        older = names[:at]
        bundle = {"name": name, "version": text, "channels": ",".join(rng.sample(channels, rng.randint(1, len(channels))))}
        if older and rng.random() < 0.8:
            bundle["replaces"] = older[-1] if rng.random() < 0.6 else rng.choice(older)
        if older and rng.random() < 0.4:
            bundle["skips"] = rng.sample(older, rng.randint(1, len(older)))
        if rng.random() < 0.1:
            bundle["skips"] = [*bundle.get("skips", []), "shop.v0.0.0-never"]
        if rng.random() < 0.3:
            bundle["skipRange"] = f"<{text.split('+')[0]}"
        if rng.random() < 0.7:
            bundle["defaultChannel"] = rng.choice(channels)
        made.append(bundle)
    return made
