//! operatorhub.io's requirements for the operator image and the bundle image.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::bundle::annotation;
use super::rule;
use crate::bundle::{CHANNELS, MANIFESTS, METADATA, OPENSHIFT, PACKAGE};
use crate::checks::{BundleContext, Check, Findings, Run, Suite, at};
use crate::dockerfile;
use crate::python::text::shown;
use crate::python::{Raise, bytes, read_document};

pub(crate) static CHECKS: &[Check] = &[
    Check::new(Suite::OperatorHub, &CONTAINER_IMAGE, Run::Bundle(container_image)),
    Check::new(Suite::OperatorHub, &LABELS, Run::Bundle(labels)),
];

static CONTAINER_IMAGE: Rule = rule(
    "operatorhub/containerImage",
    Severity::Error,
    "The annotation containerImage must name an image that the ClusterServiceVersion also uses",
)
.because("operatorhub.io shows it as the operator's image.", "0.1.0")
.example(
    "metadata:\n  annotations:\n    containerImage: quay.io/example/hello:v0.0.1\n# spec has quay.io/example/hello:v0.0.2",
    "metadata:\n  annotations:\n    containerImage: quay.io/example/hello:v0.0.2\n# spec has quay.io/example/hello:v0.0.2",
);

static LABELS: Rule = rule(
    "operatorhub/labels",
    Severity::Error,
    "The bundle image's labels must equal its annotations",
)
.because(
    "OLM reads the image labels, and users read the annotations. The pipeline rejects an image with different ones.",
    "0.1.0",
)
.example(
    "# metadata/annotations.yaml has package.v1: hello\n# metadata/labels.yaml\nlabels:\n  operators.operatorframework.io.bundle.package.v1: other",
    "# metadata/labels.yaml\nlabels:\n  com.example.team: hello",
);

/// The labels that are compared.
const COMPARED: [&str; 6] = [
    CHANNELS,
    MANIFESTS,
    "operators.operatorframework.io.bundle.mediatype.v1",
    METADATA,
    PACKAGE,
    OPENSHIFT,
];

fn container_image(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let image = annotation(context, "containerImage")?;
    let Some(name) = image.node.as_str().filter(|name| !name.is_empty()) else {
        let message = "metadata.annotations.containerImage is missing or empty";
        found.push(at(Finding::from_rule(&CONTAINER_IMAGE, message), image).hint("name the operator's image"));
        return Ok(());
    };
    let file = context.bundle.csv_file()?;
    let text = bytes(context.bundle.files(), &file)?;
    let lines = String::from_utf8_lossy(&text);
    let uses = lines.lines().filter(|line| line.contains(name)).count();
    if uses < 2 {
        let message = format!("metadata.annotations.containerImage names {name}, which no container uses");
        let hint = "name the image of the operator's deployment, with the same tag or digest";
        found.push(at(Finding::from_rule(&CONTAINER_IMAGE, message), image).hint(hint));
    }
    Ok(())
}

fn labels(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotations = context.bundle.annotations()?;
    let files = context.bundle.files();
    let more = context.bundle.path("metadata/labels.yaml");
    if files.is_file(&more) {
        let document = read_document(files, &more)?;
        let labels = document.view().get("labels")?;
        for key in COMPARED {
            let Some(label) = labels.node.get(key) else { continue };
            let annotation = annotations.get(key)?;
            if shown(label) != shown(annotation.node) {
                let message = format!(
                    "the label {key} is {:?}, the annotation {:?}",
                    shown(label),
                    shown(annotation.node)
                );
                let finding = at(Finding::from_rule(&LABELS, message), labels.inside(label));
                found.push(finding.hint("remove the label: the annotations become labels automatically"));
            }
        }
    }
    let path = context.bundle.path("Dockerfile");
    if !files.is_file(&path) {
        return Ok(());
    }
    let text = bytes(files, &path)?;
    let in_dockerfile = dockerfile::labels(&String::from_utf8_lossy(&text));
    for key in COMPARED {
        let annotation = annotations.get(key)?;
        let wanted = (!annotation.is_none()).then(|| shown(annotation.node));
        let label = in_dockerfile.get(key);
        if wanted.as_deref() == label.map(|(_, value)| value.as_str()) {
            continue;
        }
        let message = match (label, &wanted) {
            (Some((_, label)), Some(wanted)) => format!("the label {key} is {label:?}, the annotation {wanted:?}"),
            (Some((_, label)), None) => format!("the label {key} is {label:?}, but the annotation does not exist"),
            (None, _) => format!("the label {key} is missing, but the annotation exists"),
        };
        let mut finding = Finding::new(&LABELS, Severity::Warning, message).file(&path);
        if let Some((line, _)) = label {
            finding = finding.at(olmkit_yaml::Position { line: *line, column: 1 });
        }
        let hint = "the pipeline generates its Dockerfile from the annotations; building this one gives another image";
        found.push(finding.hint(hint));
    }
    Ok(())
}
