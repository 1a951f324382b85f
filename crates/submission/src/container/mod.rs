//! preflight's container policies on an image that the caller has pulled or opened.
//!
//! The rules are those of preflight 1.21.0, the wording is ours.

mod dockerfile;
mod modified;
mod packages;
mod sqlite;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use olmkit::diagnostics::{Finding, Rule, Severity};
use regex::Regex;

use crate::checked::Checked;
use crate::checks::preflight::rule;

pub use dockerfile::check_dockerfile;
pub use modified::{Change, LayerFiles, Layers, Modified, distribution};
pub use packages::{Package, packages, packages_with_files};

pub(crate) static RULES: &[&Rule] = &[
    &LICENSE, &TAG, &LAYERS, &PACKAGES, &LABELS, &TRADEMARK, &ROOT, &MODIFIED, &NAME,
];

macro_rules! rules {
    ($($constant:ident: $id:literal, $summary:literal, $why:literal, $bad:literal, $good:literal;)*) => {
        $(static $constant: Rule = rule(concat!("preflight/", $id), Severity::Error, $summary)
            .because($why, "0.1.0")
            .example($bad, $good);)*
    };
}

rules! {
    LICENSE: "HasLicense", "The image must contain licenses as files below /licenses",
        "Users must find the image's license terms.", "FROM scratch\nCOPY app /app", "FROM scratch\nCOPY app /app\nCOPY LICENSE /licenses/";
    TAG: "HasUniqueTag", "The image must have a tag other than latest",
        "`latest` can refer to another image tomorrow.", "quay.io/example/hello:latest", "quay.io/example/hello:v0.0.1";
    LAYERS: "LayerCountAcceptable", "The image must have at most 40 layers",
        "Each layer delays container starts.", "RUN a\nRUN b", "RUN a && b";
    PACKAGES: "HasNoProhibitedPackages", "The image must not contain packages that may not be redistributed",
        "Kernels and firmware of Red Hat Enterprise Linux need a license.", "RUN dnf install -y kernel-core", "# the kernel is that of the node";
    LABELS: "HasRequiredLabel", "The image must have the labels name, vendor, version, release, summary, description and maintainer",
        "The catalog shows them.", "LABEL name=hello", "LABEL name=hello vendor=Example version=v0.0.1 release=1 summary=… description=… maintainer=…";
    TRADEMARK: "HasNoProhibitedLabels", "The labels name, vendor and maintainer must respect the Red Hat trademark",
        "A partner's image must not look like a Red Hat image.", "LABEL name=\"Red Hat Hello\"", "LABEL name=\"Hello for Red Hat OpenShift\"";
    ROOT: "RunAsNonRoot", "The image must name a user other than root",
        "OpenShift starts no container as root unless it is allowed to. Such an image needs a review.", "# no USER", "USER 65532";
    MODIFIED: "HasModifiedFiles", "Layers must not change files that Red Hat packages installed, except by rpm",
        "Changes without rpm are lost with the next update, and cannot be supported.", "FROM ubi9\nRUN rm /usr/bin/curl", "FROM ubi9\nRUN rpm --erase curl";
    NAME: "HasProhibitedContainerName", "The repository name must respect the Red Hat trademark",
        "A partner's image must not look like a Red Hat image.", "quay.io/example/redhat-hello", "quay.io/example/hello";
}

/// A set of rules for containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// For images on the Universal Base Image.
    #[default]
    Container,
    /// The same for an image that is allowed to run as root.
    Root,
    /// For images without packages.
    ScratchNonroot,
    /// The same for an image that is allowed to run as root.
    ScratchRoot,
    /// For Konflux's pipelines.
    Konflux,
}

/// Data of an image for the checks.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// The name in findings.
    pub name: String,
    /// Its repository, without tag and digest. Unknown for a layout without names.
    pub repository: Option<String>,
    /// The requested tag.
    pub tag: Option<String>,
    /// The labels of its configuration.
    pub labels: BTreeMap<String, String>,
    /// The user of its configuration.
    pub user: String,
    /// The number of layers.
    pub layers: usize,
    /// The sizes of the regular files below `/licenses`. `None` without that directory.
    pub licenses: Option<Vec<u64>>,
    /// The names of its RPM packages. `None` without a database.
    pub packages: Option<Result<Vec<String>, String>>,
    /// The files of packages that its layers change otherwise than by rpm.
    pub modified: Compared,
}

/// Result of comparing an image's layers with its packages.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Compared {
    /// They were not compared.
    #[default]
    No,
    /// They cannot be compared here. The string is the reason.
    Unknown(&'static str),
    /// They cannot be compared by preflight either.
    Failed(String),
    /// The files.
    Modified(Vec<Modified>),
}

/// Findings for an image.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ContainerOutcome {
    /// The findings.
    pub found: Vec<Checked>,
    /// The rules that were checked, in preflight's order.
    pub checked: Vec<&'static Rule>,
    /// The checks of the policy that were not run, with the reason.
    pub not_checked: Vec<String>,
}

/// Result of one check on an image.
enum Verdict {
    Passed,
    Failed(String, &'static str),
    Error(String, &'static str),
    Unknown(&'static str),
}

type Run = fn(&Container) -> Verdict;

/// The checks in preflight's order.
static CHECKS: &[(&Rule, Run)] = &[
    (&LICENSE, license),
    (&TAG, tag),
    (&LAYERS, layers),
    (&PACKAGES, prohibited_packages),
    (&LABELS, labels),
    (&TRADEMARK, trademark),
    (&ROOT, root),
    (&MODIFIED, modified_files),
    (&NAME, name),
];

impl Policy {
    fn has(self, rule: &Rule) -> bool {
        let is = |other: &Rule| rule.id == other.id;
        let is_scratch = matches!(self, Self::ScratchNonroot | Self::ScratchRoot);
        let may_be_root = matches!(self, Self::Root | Self::ScratchRoot);
        let is_konflux = self == Self::Konflux;
        !((is(&PACKAGES) || is(&MODIFIED)) && is_scratch
            || is(&ROOT) && may_be_root
            || (is(&TRADEMARK) || is(&NAME)) && is_konflux)
    }

    /// Lists the checks of the policy that need more than the image.
    fn name_what_is_not_checked(self, outcome: &mut ContainerOutcome) {
        if !matches!(self, Self::ScratchNonroot | Self::ScratchRoot) {
            let name = "preflight BasedOnUbi (needs a hosted service with the layers of base images)";
            outcome.not_checked.push(name.to_owned());
        }
    }
}

/// Checks an image.
pub fn check_container(image: &Container, policy: Policy) -> ContainerOutcome {
    let mut outcome = ContainerOutcome::default();
    for (rule, run) in CHECKS.iter().filter(|(rule, _)| policy.has(rule)) {
        let name = crate::checks::name_of(rule.id);
        let (message, hint, is_error) = match run(image) {
            Verdict::Unknown(reason) => {
                outcome.not_checked.push(format!("preflight {name} ({reason})"));
                continue;
            }
            Verdict::Passed => {
                outcome.checked.push(rule);
                continue;
            }
            Verdict::Failed(message, hint) => (message, hint, false),
            Verdict::Error(message, hint) => (message, hint, true),
        };
        outcome.checked.push(rule);
        outcome.found.push(Checked {
            suite: "preflight",
            check: name,
            finding: Finding::from_rule(rule, message)
                .object(format!("Image/{}", image.name))
                .hint(hint),
            is_traceback: is_error,
        });
    }
    policy.name_what_is_not_checked(&mut outcome);
    outcome
}

fn license(image: &Container) -> Verdict {
    let hint = "copy the licenses into the image: COPY LICENSE /licenses/";
    match &image.licenses {
        None => Verdict::Failed("the image has no directory /licenses".to_owned(), hint),
        Some(sizes) if sizes.iter().any(|size| *size > 0) => Verdict::Passed,
        Some(_) => Verdict::Failed("no file below /licenses has content".to_owned(), hint),
    }
}

fn tag(image: &Container) -> Verdict {
    match image.tag.as_deref() {
        Some(tag) if tag != "latest" => {
            if tag.eq_ignore_ascii_case("latest") {
                return Verdict::Failed(format!("the tag {tag} is not unique"), "tag the image with its version");
            }
            Verdict::Passed
        }
        Some(_) => Verdict::Unknown("the tag is latest, other tags of the repository are not listed"),
        None => Verdict::Unknown("the image was named without a tag, those of the repository are not listed"),
    }
}

fn layers(image: &Container) -> Verdict {
    const MOST: usize = 40;
    if image.layers <= MOST {
        return Verdict::Passed;
    }
    let message = format!("the image has {} layers, {MOST} are allowed", image.layers);
    Verdict::Failed(
        message,
        "join commands of the Dockerfile with `&&`, or copy from a build stage",
    )
}

fn prohibited_packages(image: &Container) -> Verdict {
    const EXACTLY: [&str; 17] = [
        "grub",
        "grub2",
        "kernel",
        "kernel-core",
        "kernel-debug",
        "kernel-debug-core",
        "kernel-debug-devel",
        "kernel-debug-modules",
        "kernel-debug-modules-extra",
        "kernel-devel",
        "kernel-doc",
        "kernel-modules",
        "kernel-modules-extra",
        "kernel-tools",
        "kernel-tools-libs",
        "kmod-kvdo",
        "linux-firmware",
    ];
    let names = match &image.packages {
        None => {
            let hint = "base it on the Universal Base Image, or use --policy scratch-nonroot";
            return Verdict::Error("the image has no RPM database".to_owned(), hint);
        }
        Some(Err(problem)) => return Verdict::Error(problem.clone(), "use an image whose database is rpmdb.sqlite"),
        Some(Ok(names)) => names,
    };
    let is_prohibited = |name: &&String| EXACTLY.contains(&name.as_str()) || name.starts_with("kpatch");
    let prohibited: Vec<&str> = names.iter().filter(is_prohibited).map(String::as_str).collect();
    if prohibited.is_empty() {
        return Verdict::Passed;
    }
    let message = format!(
        "the image has packages that may not be redistributed: {}",
        prohibited.join(", ")
    );
    Verdict::Failed(message, "remove them")
}

/// The labels that an image must have.
const REQUIRED_LABELS: [&str; 7] = [
    "name",
    "vendor",
    "version",
    "release",
    "summary",
    "description",
    "maintainer",
];

fn labels(image: &Container) -> Verdict {
    let is_missing = |label: &&&str| image.labels.get(**label).is_none_or(String::is_empty);
    let missing: Vec<&str> = REQUIRED_LABELS.iter().filter(is_missing).copied().collect();
    if missing.is_empty() {
        return Verdict::Passed;
    }
    let message = format!("labels are missing or empty: {}", missing.join(", "));
    Verdict::Failed(
        message,
        "add them to the Dockerfile with LABEL, or to `olmkit image build` with --label",
    )
}

fn trademark(image: &Container) -> Verdict {
    let violates = |label: &&&str| image.labels.get(**label).is_some_and(|text| violates_trademark(text));
    let wrong: Vec<&str> = ["name", "vendor", "maintainer"]
        .iter()
        .filter(violates)
        .copied()
        .collect();
    if wrong.is_empty() {
        return Verdict::Passed;
    }
    let message = format!("labels use the trademark of Red Hat: {}", wrong.join(", "));
    Verdict::Failed(message, "only \"… for Red Hat …\" is allowed")
}

fn root(image: &Container) -> Verdict {
    let hint = "set USER to a number other than 0, such as 65532";
    match image.user.as_str() {
        "" => Verdict::Failed("the image names no user, so it runs as root".to_owned(), hint),
        user @ ("0" | "root") => Verdict::Failed(format!("the user of the image is {user}"), hint),
        _ => Verdict::Passed,
    }
}

fn modified_files(image: &Container) -> Verdict {
    const NAMED: usize = 5;
    let hint = "change packages with dnf or rpm, and add your files under other names";
    let modified = match &image.modified {
        Compared::No => return Verdict::Unknown("the layers were not read"),
        Compared::Unknown(reason) => return Verdict::Unknown(reason),
        Compared::Failed(problem) => return Verdict::Error(problem.clone(), "base it on the Universal Base Image"),
        Compared::Modified(modified) => modified,
    };
    if modified.is_empty() {
        return Verdict::Passed;
    }
    let of = |one: &Modified| format!("{} in layer {} ({})", one.path, one.layer, one.reason);
    let mut message = modified.iter().take(NAMED).map(of).collect::<Vec<_>>().join(", ");
    if let Some(more) = modified.len().checked_sub(NAMED).filter(|more| *more > 0) {
        message.push_str(&format!(" and {more} more"));
    }
    Verdict::Failed(format!("layers change files of packages: {message}"), hint)
}

fn name(image: &Container) -> Verdict {
    let Some(repository) = &image.repository else {
        return Verdict::Unknown("the layout does not contain the image's name");
    };
    let last = repository.rsplit('/').next().unwrap_or(repository);
    if !violates_trademark(last) {
        return Verdict::Passed;
    }
    Verdict::Failed(
        format!("the name {last} uses the trademark of Red Hat"),
        "rename the repository",
    )
}

static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("red[^a-z0-9]*hat").ok());
static AT_START: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^[^a-z0-9]*red[^a-z0-9]*hat").ok());
static AFTER_FOR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("for[^a-z0-9]*red[^a-z0-9]*hat").ok());

/// Returns true if a string starts with the trademark, or contains it other than once after "for".
fn violates_trademark(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_in = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(&text));
    let count = WORDS.as_ref().map_or(0, |pattern| pattern.find_iter(&text).count());
    let allowed = usize::from(is_in(&AT_START)) + usize::from(is_in(&AFTER_FOR));
    is_in(&AT_START) || count > allowed
}

#[cfg(test)]
mod tests;
