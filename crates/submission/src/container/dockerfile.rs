//! preflight's container policies on a Dockerfile, as far as they can be decided before the build.

use olmkit::diagnostics::Finding;
use olmkit_yaml::Position;

use super::{CHECKS, Container, ContainerOutcome, LABELS, Policy, REQUIRED_LABELS, ROOT, TRADEMARK, Verdict};
use crate::checked::Checked;
use crate::checks::name_of;
use crate::dockerfile::{Image, image};

/// Checks the labels and the user of the image that a Dockerfile builds. The base image's labels are unknown.
pub fn check_dockerfile(file: &str, text: &str, policy: Policy) -> ContainerOutcome {
    let image = image(text);
    let container = Container {
        labels: image
            .labels
            .iter()
            .map(|(key, (_, value))| (key.clone(), value.clone()))
            .collect(),
        user: image.user.as_ref().map(|(_, user)| user.clone()).unwrap_or_default(),
        ..Container::default()
    };
    let mut outcome = ContainerOutcome::default();
    for (rule, run) in CHECKS.iter().filter(|(rule, _)| policy.has(rule)) {
        let is_here = [&LABELS, &TRADEMARK, &ROOT].iter().any(|one| one.id == rule.id);
        let unknown = if is_here {
            left_to_base(rule.id, &image)
        } else {
            Some("the Dockerfile does not say".to_owned())
        };
        if let Some(reason) = unknown {
            outcome
                .not_checked
                .push(format!("preflight {} ({reason})", name_of(rule.id)));
            continue;
        }
        outcome.checked.push(rule);
        let (Verdict::Failed(message, hint) | Verdict::Error(message, hint)) = run(&container) else {
            continue;
        };
        let mut finding = Finding::from_rule(rule, message).file(file).hint(hint);
        if let Some(line) = line_of(rule.id, &image) {
            finding = finding.at(Position { line, column: 1 });
        }
        outcome.found.push(Checked {
            suite: "preflight",
            check: name_of(rule.id),
            finding,
            is_traceback: false,
        });
    }
    policy.name_what_is_not_checked(&mut outcome);
    outcome
}

/// Why a rule cannot be decided: the base image may have the missing label, or the build sets the value.
fn left_to_base(rule: &str, image: &Image) -> Option<String> {
    let user = image.user.as_ref().map(|(_, user)| user.as_str());
    if rule == ROOT.id && user.is_some_and(|user| user.contains('$')) {
        return Some("the user is a variable".to_owned());
    }
    let base = image.base.as_deref()?;
    if rule == ROOT.id && user.is_none() {
        return Some(format!("the Dockerfile names no user, {base} may"));
    }
    let is_absent = |label: &&&str| !image.labels.contains_key(**label);
    let absent: Vec<&str> = REQUIRED_LABELS.iter().filter(is_absent).copied().collect();
    let is_empty = REQUIRED_LABELS
        .iter()
        .any(|label| image.labels.get(*label).is_some_and(|(_, value)| value.is_empty()));
    (rule == LABELS.id && !absent.is_empty() && !is_empty)
        .then(|| format!("the Dockerfile lacks {}, which {base} may have", absent.join(", ")))
}

/// The line that a finding is about.
fn line_of(rule: &str, image: &Image) -> Option<u32> {
    if rule == ROOT.id {
        return image.user.as_ref().map(|(line, _)| *line);
    }
    let is_wrong = |value: &str| {
        if rule == LABELS.id {
            value.is_empty()
        } else {
            super::violates_trademark(value)
        }
    };
    let mut labels = image.labels.iter();
    labels
        .find(|(key, (_, value))| REQUIRED_LABELS.contains(&key.as_str()) && is_wrong(value))
        .map(|(_, (line, _))| *line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "version=1 release=1 summary=x description=x maintainer=x";

    /// The rules with findings and their lines, and the undecided ones.
    fn checked(text: &str, policy: Policy) -> (Vec<(&'static str, Option<u32>)>, Vec<String>) {
        let outcome = check_dockerfile("Dockerfile", text, policy);
        let found = outcome.found.iter();
        let found = found
            .map(|one| (one.check, one.finding.position.map(|at| at.line)))
            .collect();
        (found, outcome.not_checked)
    }

    #[test]
    fn labels_and_user_are_decided_before_the_build() {
        let sound = format!("FROM scratch\nLABEL name=hello vendor=Example {REST}\nUSER 65532\n");
        assert!(checked(&sound, Policy::ScratchNonroot).0.is_empty());
        let (found, _) = checked("FROM scratch\nUSER root\n", Policy::ScratchNonroot);
        assert_eq!(found, [("HasRequiredLabel", None), ("RunAsNonRoot", Some(2))]);
        let (found, _) = checked("FROM scratch\n", Policy::ScratchRoot);
        assert_eq!(found, [("HasRequiredLabel", None)]);
        let trademark = sound.replace("name=hello", "name='Red Hat Hello'");
        assert_eq!(
            checked(&trademark, Policy::Container).0,
            [("HasNoProhibitedLabels", Some(2))]
        );
        let empty = sound
            .replace("FROM scratch", "FROM ubi9")
            .replace("vendor=Example", "vendor=\"\"");
        assert_eq!(checked(&empty, Policy::Container).0, [("HasRequiredLabel", Some(2))]);
    }

    #[test]
    fn properties_of_the_base_image_are_reported_as_unknown() {
        let (found, unknown) = checked("FROM ubi9\nLABEL name=hello\n", Policy::Container);
        assert!(found.is_empty(), "{found:?}");
        let is_named = |text: &str| unknown.iter().any(|line| line.contains(text));
        assert!(
            is_named("lacks vendor, version, release")
                && is_named("RunAsNonRoot (the Dockerfile names no user, ubi9 may)")
        );
        assert!(
            is_named("HasLicense")
                && is_named("BasedOnUbi")
                && is_named("HasModifiedFiles (the Dockerfile does not say)"),
            "{unknown:?}"
        );
        let (_, unknown) = checked("FROM scratch\nUSER ${UID}\n", Policy::ScratchNonroot);
        assert!(
            unknown.iter().any(|line| line.contains("the user is a variable")),
            "{unknown:?}"
        );
    }
}
