//! MA: the validator `multiarch`, which queries a container tool for the images' platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use serde_json::Value;

use super::Profile;
use super::checked::{Checked, Subject};
use super::context::{Context, Csv, field, items, strings};
use crate::diagnostics::{Origin, Rule, Severity, define_rules};
use crate::process::{Environment, Launcher, Run};
use olmkit_go::strconv::quote;

define_rules! {
    MA_0 = {
        id: "MA-0",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "The container tool must be docker or podman and able to inspect the images.",
        why: "olmkit reads the image platforms with this tool.",
        bad: "container-tools=skopeo",
        good: "container-tools=podman",
        since: "0.1.0",
    }
    MA_1 = {
        id: "MA-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "All images must be built for the labeled platforms.",
        why: "A pod fails to start if its image was not built for the node's platform.",
        bad: "an image for amd64 only, label arch.arm64",
        good: "an image index with both",
        since: "0.1.0",
    }
    MA_2 = {
        id: "MA-2",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "Each architecture of the manager's image should have a label.",
        why: "Consoles hide the operator on clusters whose architecture has no label.",
        bad: "image for arm64 without label",
        good: "operatorframework.io/arch.arm64: supported",
        since: "0.1.0",
    }
    MA_3 = {
        id: "MA-3",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "Each operating system of the manager's image should have a label.",
        why: "Consoles hide the operator on clusters whose operating system has no label.",
        bad: "image for windows without label",
        good: "operatorframework.io/os.windows: supported",
        since: "0.1.0",
    }
    MA_4 = {
        id: "MA-4",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "Other images should be built for the same platforms as the manager's image.",
        why: "The pods with these images fail on platforms where the manager runs.",
        bad: "sidecar for amd64 only",
        good: "sidecar for both",
        since: "0.1.0",
    }
    MA_5 = {
        id: "MA-5",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "Pods should have a node affinity for their images' platforms.",
        why: "If the cluster's nodes have different platforms, a pod may be scheduled to a node that cannot run it.",
        bad: "affinity: {}",
        good: "kubernetes.io/arch In [amd64, arm64]",
        since: "0.1.0",
    }
    MA_6 = {
        id: "MA-6",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("multiarch"),
        summary: "The node affinity and the images should name the same platforms.",
        why: "The pod is scheduled to a node that cannot run it, or never uses one that could.",
        bad: "In [amd64]",
        good: "In [amd64, arm64]",
        since: "0.1.0",
    }
}

const ARCHITECTURE_LABEL: &str = "operatorframework.io/arch.";
const SYSTEM_LABEL: &str = "operatorframework.io/os.";

/// Operating system and architecture. `error` means an image that could not be inspected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Platform {
    system: String,
    architecture: String,
}

impl Platform {
    fn unknown() -> Self {
        Self {
            system: "error".to_string(),
            architecture: "error".to_string(),
        }
    }

    fn is_unknown(&self) -> bool {
        self.architecture == "error"
    }
}

type Images = BTreeMap<String, Vec<Platform>>;

/// Asks for the platforms of an image.
type Inspect<'a> = dyn Fn(&str) -> Result<Vec<Platform>, String> + 'a;

/// Runs the validator.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let wanted = context
        .options
        .values
        .get("container-tools")
        .map(|tool| tool.to_lowercase())
        .unwrap_or_default();
    let tool = match wanted.as_str() {
        "" | "none" | "docker" => "docker",
        "podman" => "podman",
        other => {
            let detail = format!(
                "invalid value (container-tools) for ({other}). One of: [docker, podman, none] (If not set, the default value is docker)"
            );
            return vec![finding(&csv, &MA_0, Severity::Error, detail)];
        }
    };
    let keep_unknown = context.options.profile == Profile::OperatorSdk142;
    check_with(&csv, &|image| {
        inspect(&context.options.launcher, tool, image, keep_unknown)
    })
}

fn finding(csv: &Csv<'_>, rule: &'static Rule, severity: Severity, detail: String) -> Checked {
    Checked::shared(rule, severity, &Subject::Value(csv.name().to_string()), detail)
        .at(csv.object, "/spec/install/spec/deployments")
}

fn inspect(launcher: &Launcher, tool: &str, image: &str, keep_unknown: bool) -> Result<Vec<Platform>, String> {
    let run = |arguments: &[&str]| -> Result<Vec<u8>, String> {
        let line = format!("{tool} {}", arguments.join(" "));
        // Container tools find their daemon, storage and credentials in the environment.
        let run = Run::new(OsStr::new(tool), Environment::Except(&["GIT_*"])).arguments(arguments.iter().copied());
        let output = launcher
            .run(run)
            .map_err(|error| format!("{line} failed with error: (exec: {}: {error}) ", quote(tool)))?;
        if output.status.success() {
            return Ok(output.output);
        }
        let text = String::from_utf8_lossy(&output.output).into_owned() + &String::from_utf8_lossy(&output.errors);
        Err(format!(
            "{line} failed with error: (exit status {}) {text}",
            output.status.code().unwrap_or(-1)
        ))
    };
    // The bundle is not to be trusted: no image name may become a flag of the container tool.
    if image.starts_with('-') {
        return Err(format!("{} is not an image name", quote(image)));
    }
    run(&["pull", image])?;
    let manifest: Value =
        serde_json::from_slice(&run(&["manifest", "inspect", image])?).map_err(|error| error.to_string())?;
    let platforms = items(&manifest, "manifests")
        .iter()
        .filter_map(|entry| entry.get("platform"))
        .map(|platform| Platform {
            system: field(platform, "os").to_string(),
            architecture: field(platform, "architecture").to_string(),
        });
    let real = |platform: &Platform| {
        let known = |text: &str| !text.is_empty() && text != "unknown";
        keep_unknown || (known(&platform.system) && known(&platform.architecture))
    };
    Ok(platforms.filter(real).collect())
}

/// Everything the checks compare.
struct Survey {
    architecture_labels: Vec<String>,
    system_labels: Vec<String>,
    manager_names: Vec<String>,
    manager: Images,
    other: Images,
    related: Images,
    affinity: BTreeMap<String, Vec<Platform>>,
}

fn check_with(csv: &Csv<'_>, inspect: &Inspect<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let mut survey = survey(csv);
    for images in [&mut survey.manager, &mut survey.other, &mut survey.related] {
        for (image, platforms) in images.iter_mut() {
            match inspect(image).or_else(|_| inspect(image)) {
                Ok(found) => *platforms = found,
                Err(reason) => {
                    let detail = format!("unable to inspect the image ({image}) : {reason}");
                    findings.push(finding(csv, &MA_0, Severity::Warning, detail));
                    *platforms = vec![Platform::unknown()];
                }
            }
        }
    }
    findings.extend(survey.support(csv));
    findings.extend(survey.labels(csv));
    for images in [&survey.other, &survey.related] {
        findings.extend(survey.other_images(csv, images));
    }
    for images in [&survey.manager, &survey.other] {
        findings.extend(survey.node_affinity(csv, images));
    }
    findings
}

fn survey(csv: &Csv<'_>) -> Survey {
    let labels = |part: &str| -> Vec<String> {
        let labels = csv.get("/metadata/labels").as_object();
        let supported = labels
            .into_iter()
            .flatten()
            .filter(|(key, value)| key.contains(part) && value.as_str() == Some("supported"));
        supported.map(|(key, _)| key.clone()).collect()
    };
    let mut survey = Survey {
        architecture_labels: labels(ARCHITECTURE_LABEL),
        system_labels: labels(SYSTEM_LABEL),
        manager_names: Vec::new(),
        manager: Images::new(),
        other: Images::new(),
        related: Images::new(),
        affinity: BTreeMap::new(),
    };
    for deployment in csv.deployments() {
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        let containers = items(pod, "containers");
        let mut has_manager = false;
        for container in containers {
            let image = field(container, "image");
            if survey.manager.contains_key(image) {
                continue;
            }
            if field(container, "name") == "manager" {
                survey.add_manager(image);
                has_manager = true;
            }
            survey.affinity.insert(image.to_string(), affinity_platforms(pod));
        }
        if !has_manager {
            for container in containers {
                let image = field(container, "image");
                if field(container, "name") != "kube-rbac-proxy" && !survey.manager.contains_key(image) {
                    survey.add_manager(image);
                }
            }
        }
    }
    for (_, container) in csv.containers() {
        let image = field(container, "image");
        if !survey.manager.contains_key(image) {
            survey.other.insert(image.to_string(), Vec::new());
        }
    }
    for related in csv.list("/spec/relatedImages") {
        survey.related.insert(field(related, "image").to_string(), Vec::new());
    }
    survey
}

/// The platforms that a pod's required node affinity names.
fn affinity_platforms(pod: &Value) -> Vec<Platform> {
    let terms = pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let mut platforms = Vec::new();
    for term in terms.and_then(Value::as_array).into_iter().flatten() {
        let values = |key: &str| -> Vec<&str> {
            let expressions = items(term, "matchExpressions").iter();
            let mut matching = expressions
                .filter(|expression| field(expression, "operator") == "In" && field(expression, "key") == key);
            matching
                .next_back()
                .map(|expression| strings(expression, "values").collect())
                .unwrap_or_default()
        };
        let architectures = values("kubernetes.io/arch");
        for system in values("kubernetes.io/os") {
            for architecture in &architectures {
                platforms.push(Platform {
                    system: system.to_string(),
                    architecture: (*architecture).to_string(),
                });
            }
        }
    }
    platforms
}

/// A list as `%q` prints it.
fn quoted<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<String> = values.into_iter().map(quote).collect();
    format!("[{}]", values.join(" "))
}

fn quoted_platforms(platforms: &[Platform]) -> String {
    let texts: Vec<String> = platforms
        .iter()
        .map(|platform| format!("{}/{}", platform.system, platform.architecture))
        .collect();
    quoted(texts.iter().map(String::as_str))
}

impl Survey {
    fn add_manager(&mut self, image: &str) {
        self.manager.insert(image.to_string(), Vec::new());
        self.manager_names.push(image.to_string());
    }

    fn values(labels: &[String], part: &str, default: &str) -> Vec<String> {
        if labels.is_empty() {
            vec![default.to_string()]
        } else {
            labels.iter().map(|label| label.replace(part, "")).collect()
        }
    }

    /// All architectures (or systems) that the labels or the manager's images have.
    fn of_manager(&self, architectures: bool) -> BTreeSet<String> {
        let (labels, part, default) = match architectures {
            true => (&self.architecture_labels, ARCHITECTURE_LABEL, "amd64"),
            false => (&self.system_labels, SYSTEM_LABEL, "linux"),
        };
        let images = self.manager.values().flatten();
        let from_images = images.map(|platform| {
            if architectures {
                &platform.architecture
            } else {
                &platform.system
            }
        });
        Self::values(labels, part, default)
            .into_iter()
            .chain(from_images.filter(|text| !text.is_empty()).cloned())
            .collect()
    }

    fn support(&self, csv: &Csv<'_>) -> Vec<Checked> {
        let mut missing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for system in Self::values(&self.system_labels, SYSTEM_LABEL, "linux") {
            for architecture in Self::values(&self.architecture_labels, ARCHITECTURE_LABEL, "amd64") {
                for (image, platforms) in self.manager.iter().chain(&self.other).chain(&self.related) {
                    let has = |platform: &Platform| {
                        platform.is_unknown() || (platform.system == system && platform.architecture == architecture)
                    };
                    if !platforms.iter().any(has) {
                        missing
                            .entry(format!("{system}.{architecture}"))
                            .or_default()
                            .push(image);
                    }
                }
            }
        }
        let finding = |(platform, mut images): (String, Vec<&str>)| {
            images.sort_unstable();
            let detail = format!(
                "not all images specified are providing the support described via the CSV labels. Note that (OS.architecture): \
                 ({platform}) was not found for the image(s) [{}]",
                images.join(" ")
            );
            finding(csv, &MA_1, Severity::Error, detail)
        };
        missing.into_iter().map(finding).collect()
    }

    fn labels(&self, csv: &Csv<'_>) -> Vec<Checked> {
        let mut findings = Vec::new();
        let sides = [
            (
                &MA_2,
                true,
                &self.architecture_labels,
                ARCHITECTURE_LABEL,
                "Arch(s)",
                "amd64",
                "amd64 architectures, you MUST,use",
            ),
            (
                &MA_3,
                false,
                &self.system_labels,
                SYSTEM_LABEL,
                "OS(s)",
                "linux",
                "linux OS you MUST,use",
            ),
        ];
        for (rule, architectures, labels, part, word, default, tail) in sides {
            let all = self.of_manager(architectures);
            let only_default = all.len() == 1 && all.contains(default);
            let missing: Vec<&str> = all
                .iter()
                .filter(|value| {
                    *value != "error" && !only_default && !labels.iter().any(|label| label.contains(value.as_str()))
                })
                .map(String::as_str)
                .collect();
            if missing.is_empty() {
                continue;
            }
            let detail = format!(
                "check if the CSV is missing the label ({part}<value>) for the {word}: {}. Be aware that your Operator manager image {} \
                 provides this support. Thus, it is very likely that you want to provide it and if you support more than {tail} the \
                 required labels for all which are supported.Otherwise, your solution cannot be listed on the cluster for these architectures",
                quoted(missing),
                quoted(self.manager_names.iter().map(String::as_str))
            );
            findings.push(finding(csv, rule, Severity::Warning, detail));
        }
        findings
    }

    fn other_images(&self, csv: &Csv<'_>, images: &Images) -> Vec<Checked> {
        let mut findings = Vec::new();
        for (image, platforms) in images {
            if platforms.iter().any(Platform::is_unknown) {
                continue;
            }
            for (architectures, word) in [(true, "Arch(s)"), (false, "OS(s)")] {
                let wanted = self.of_manager(architectures);
                let has = |value: &str| {
                    platforms.iter().any(|platform| {
                        if architectures {
                            platform.architecture == value
                        } else {
                            platform.system == value
                        }
                    })
                };
                let missing: Vec<&str> = wanted
                    .iter()
                    .map(String::as_str)
                    .filter(|value| *value != "error" && !has(value))
                    .collect();
                if missing.is_empty() {
                    continue;
                }
                let detail = format!(
                    "check if the image {image} should not support {}. Note that this CSV has labels for this {word} Your manager image {} \
                     are providing this support OR the CSV is configured via labels to support it. Then, please verify if this image should \
                     not support it",
                    quoted(missing),
                    quoted(self.manager_names.iter().map(String::as_str))
                );
                findings.push(finding(csv, &MA_4, Severity::Warning, detail));
            }
        }
        findings
    }

    fn node_affinity(&self, csv: &Csv<'_>, images: &Images) -> Vec<Checked> {
        let mut findings = Vec::new();
        let mut add = |rule, detail| findings.push(finding(csv, rule, Severity::Warning, detail));
        for (image, platforms) in images {
            let affinity = self.affinity.get(image).map(Vec::as_slice).unwrap_or_default();
            let shown = quote(image);
            if affinity.is_empty() {
                if platforms.iter().any(Platform::is_unknown) {
                    add(
                        &MA_5,
                        format!("check if the CSV is missing a node affinity configuration for the image: {shown}. "),
                    );
                }
                let detail = format!(
                    "check if the CSV has a missing or invalid node affinity configuration for the image: {shown}. The image data suggests \
                     the following platforms are supported: {}",
                    quoted_platforms(platforms)
                );
                add(&MA_5, detail);
                continue;
            }
            let beyond = |these: &[Platform], those: &[Platform]| -> Vec<Platform> {
                these
                    .iter()
                    .filter(|platform| !those.contains(platform))
                    .cloned()
                    .collect()
            };
            let (extra, missing) = (beyond(affinity, platforms), beyond(platforms, affinity));
            if !extra.is_empty() {
                let detail = format!(
                    "the CSV includes {} in the node affinity configuration for the image: {shown}, but the image data suggests the \
                     following platforms are supported: {}",
                    quoted_platforms(&extra),
                    quoted_platforms(platforms)
                );
                add(&MA_6, detail);
            }
            if !missing.is_empty() {
                let detail = format!(
                    "the image data indicates {} is supported for the image: {shown}, but the node affinity configuration for the image only \
                     specifies {}",
                    quoted_platforms(&missing),
                    quoted_platforms(affinity)
                );
                add(&MA_6, detail);
            }
        }
        findings
    }
}
