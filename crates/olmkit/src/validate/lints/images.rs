//! IMG: the images that the operator uses.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::Reference;
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items};

define_rules! {
    IMG_1 = {
        id: "IMG-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Images should be pinned by digest. A tag can be moved, and an ImageDigestMirrorSet does not apply to it.",
        why: "Clusters that mirror by digest cannot pull the image. A warning if the operator declares that it works in disconnected clusters.",
        bad: "image: quay.io/x/a:1.0",
        good: "image: quay.io/x/a@sha256:…",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "mirrors by digest (ImageDigestMirrorSet) do not apply to a tag",
            "any",
            "https://docs.openshift.com/container-platform/latest/operators/operator_sdk/osdk-generating-csvs.html",
        ),
    }
    IMG_2 = {
        id: "IMG-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Images should have a digest, or a tag other than `latest`.",
        why: "The tag moves with each release, so pods may run different versions. A warning if the operator declares that it works in disconnected clusters.",
        bad: "image: quay.io/x/a",
        good: "image: quay.io/x/a:1.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "each new pod pulls the image that the tag names at that time (imagePullPolicy: Always)",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    IMG_3 = {
        id: "IMG-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each image should be a valid reference.",
        why: "The kubelet rejects the image and the pod never starts.",
        bad: "image: https://quay.io/x/a",
        good: "image: quay.io/x/a:1.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "the library with which the kubelet parses references rejects it",
            "operator-sdk 1.42",
            "crates/base/src/object/corpus_tests.rs: image_references_agree_with_distribution",
        ),
    }
    IMG_4 = {
        id: "IMG-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "`relatedImages` should list every image in a RELATED_IMAGE_… variable. `catalog render` adds only the images of containers.",
        why: "Mirroring tools copy only listed images, so this one is missing in a disconnected cluster. A warning if the operator declares that it works there.",
        bad: "env:\n- name: RELATED_IMAGE_CACHE\n  value: quay.io/x/cache@sha256:…",
        good: "relatedImages:\n- name: cache\n  image: quay.io/x/cache@sha256:…",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "mirroring tools copy the images in relatedImages",
            "any",
            "https://docs.openshift.com/container-platform/latest/operators/operator_sdk/osdk-generating-csvs.html",
        ),
    }
    IMG_5 = {
        id: "IMG-5",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The annotation `containerImage` should name an image that the operator uses.",
        why: "Consoles show, and scanners check, an image that the operator does not use.",
        bad: "containerImage: quay.io/x/a:0.9",
        good: "containerImage: quay.io/x/a:1.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "consoles show the image of this annotation",
            "any",
            "https://olm.operatorframework.io/docs/tasks/creating-operator-manifests/",
        ),
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = images(&csv);
    // Digests are needed for mirroring, so bundles that do not claim to support it are skipped.
    if !is_for_disconnected_clusters(&csv) {
        let of_mirrors = [IMG_1.id, IMG_2.id, IMG_4.id];
        for checked in &mut findings {
            if of_mirrors.contains(&checked.finding.rule) {
                checked.finding.severity = Severity::Info;
            }
        }
    }
    findings
}

/// Returns true if the operator declares that it works in disconnected clusters.
fn is_for_disconnected_clusters(csv: &Csv<'_>) -> bool {
    let listed = csv.annotation("operators.openshift.io/infrastructure-features");
    let words = listed.unwrap_or_default().to_lowercase();
    csv.annotation("features.operators.openshift.io/disconnected") == Some("true") || words.contains("disconnected")
}

fn images(csv: &Csv<'_>) -> Vec<Checked> {
    let used = used(csv);
    let mut findings = Vec::new();
    for (image, pointer) in &used {
        findings.extend(one(csv, image, pointer));
    }
    let related: BTreeSet<&str> = csv
        .list("/spec/relatedImages")
        .iter()
        .map(|related| field(related, "image"))
        .collect();
    for (at, related) in csv.list("/spec/relatedImages").iter().enumerate() {
        let image = field(related, "image");
        if !used.contains_key(image) {
            findings.extend(invalid(csv, image, &format!("/spec/relatedImages/{at}/image")));
        }
    }
    // Rendering a catalog adds the images of containers to this list, but not those in variables.
    for (image, pointer) in used.iter().filter(|(_, pointer)| pointer.ends_with("/value")) {
        if !related.contains(*image) && Reference::parse_normalized(image).is_ok() {
            let message = format!("{image} is not listed in `relatedImages`: mirroring will miss it");
            findings.push(
                Checked::new(&IMG_4, message)
                    .at(csv.object, pointer)
                    .hint("add it to spec.relatedImages, as `generate bundle` does"),
            );
        }
    }
    let all: Vec<&str> = used.keys().copied().chain(related.iter().copied()).collect();
    if let Some(message) = csv.annotation("containerImage").and_then(|image| unused(image, &all)) {
        findings.push(
            Checked::new(&IMG_5, message)
                .at(csv.object, "/metadata/annotations/containerImage")
                .hint("use the image of the operator's container"),
        );
    }
    findings
}

/// The problem of the image that consoles show, compared with those that the operator uses.
fn unused(image: &str, used: &[&str]) -> Option<String> {
    if image.is_empty() || used.is_empty() || used.contains(&image) {
        return None;
    }
    let not_used = || Some(format!("containerImage is {image}, which the operator does not use"));
    let parsed = |image: &str| Reference::parse_normalized(image).ok();
    let Some(own) = parsed(image) else { return not_used() };
    let same: Vec<Reference> = used
        .iter()
        .filter_map(|other| parsed(other))
        .filter(|other| other.name() == own.name())
        .collect();
    // Only the registry can resolve whether a tag and a digest are the same image.
    let may_be =
        |other: &Reference| other.version() == own.version() || other.digest().is_some() != own.digest().is_some();
    let is_bare = own.tag().is_none() && own.digest().is_none();
    match same.first() {
        Some(other) if is_bare && other.version() != own.version() => Some(format!(
            "containerImage is {image}, without the tag or digest that the operator uses: {other}"
        )),
        Some(_) if same.iter().any(may_be) => None,
        _ => not_used(),
    }
}

/// Every image of a container or of an environment variable like RELATED_IMAGE_…, with its first position.
fn used<'v>(csv: &Csv<'v>) -> BTreeMap<&'v str, String> {
    let mut used = BTreeMap::new();
    for (pointer, container) in csv.all_containers() {
        let image = field(container, "image");
        if !image.is_empty() {
            used.entry(image).or_insert_with(|| format!("{pointer}/image"));
        }
        for (number, variable) in items(container, "env").iter().enumerate() {
            let value = field(variable, "value");
            // Proxies load plugins from images that are written so.
            let value = value.strip_prefix("oci://").unwrap_or(value);
            if field(variable, "name").starts_with("RELATED_IMAGE_") && !value.is_empty() {
                used.entry(value)
                    .or_insert_with(|| format!("{pointer}/env/{number}/value"));
            }
        }
    }
    used
}

fn one(csv: &Csv<'_>, image: &str, pointer: &str) -> Option<Checked> {
    let reference = match Reference::parse_normalized(image) {
        Ok(reference) => reference,
        Err(_) => return invalid(csv, image, pointer),
    };
    if reference.digest().is_some() {
        return None;
    }
    match reference.tag() {
        None | Some("latest") => {
            let message = format!("{image} uses a mutable tag; pods may run different versions");
            Some(
                Checked::new(&IMG_2, message)
                    .at(csv.object, pointer)
                    .hint("pin a digest: `@sha256:…`"),
            )
        }
        Some(_) => {
            let message = format!("{image} uses a tag, which can be moved and which digest mirrors do not cover");
            Some(
                Checked::new(&IMG_1, message)
                    .at(csv.object, pointer)
                    .hint("pin a digest, for example with `generate bundle --use-image-digests`"),
            )
        }
    }
}

fn invalid(csv: &Csv<'_>, image: &str, pointer: &str) -> Option<Checked> {
    let error = Reference::parse_normalized(image).err()?;
    let message = format!("{image:?} is not an image reference: {error}");
    Some(
        Checked::new(&IMG_3, message)
            .at(csv.object, pointer)
            .hint("use REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:…"),
    )
}
