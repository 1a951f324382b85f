//! Steps of the pipeline beside its static tests that need no service.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{Check, Context, Found, Run, Suite, at, rule};
use crate::python::Raise;
use crate::repository::Operator;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &READ_CONFIG, Run::Operator(read_config)).step(),
    Check::new(Suite::Isv, &PROJECT, Run::Operator(project)).step(),
];

static READ_CONFIG: Rule = rule(
    "pipeline/read-config",
    Severity::Error,
    "step",
    "ci.yaml has updateGraph or fbc.enabled, not both",
)
.because(
    "With file-based catalogs the templates are the update graph; the task read-config refuses both.",
    "0.2.0",
)
.example(
    "updateGraph: replaces-mode\nfbc:\n  enabled: true",
    "fbc:\n  enabled: true",
);

static PROJECT: Rule = rule(
    "pipeline/certification-project-check",
    Severity::Error,
    "step",
    "ci.yaml of a certified operator names its certification project",
)
.because("The task certification-project-check stops without it.", "0.2.0")
.example("merge: true", "cert_project_id: 0123456789abcdef01234567");

fn read_config(_: &Context<'_>, operator: &Operator, found: &mut Found) -> Result<(), Raise> {
    let mode = operator.config()?.view().get("updateGraph")?;
    if operator.uses_catalogs()? && mode.is_true() {
        let message = "updateGraph and fbc.enabled exclude one another";
        found.push(at(Finding::of(&READ_CONFIG, message), mode).hint("remove updateGraph"));
    }
    Ok(())
}

fn project(_: &Context<'_>, operator: &Operator, found: &mut Found) -> Result<(), Raise> {
    let project = operator.config()?.view().get("cert_project_id")?;
    if !project.is_true() {
        let message = "ci.yaml does not define cert_project_id";
        let hint = "add `cert_project_id:` with the ID that the partner portal shows for the project";
        let file = format!("operators/{}/ci.yaml", operator.name);
        found.push(Finding::of(&PROJECT, message).file(file).hint(hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Memory, Options, Repository, Suite, check_operator};

    fn found(ci: &str, strict_compat: bool) -> Vec<&'static str> {
        let files: Memory = [("operators/hello/ci.yaml", ci)].into_iter().collect();
        let repository = Repository::new(Arc::new(files));
        let operator = repository.operator("hello").expect("it has a ci.yaml");
        let options = Options {
            strict_compat,
            suites: vec![Suite::Isv, Suite::Common],
            ..Options::default()
        };
        let checked = check_operator(&repository, &operator, &options);
        checked.iter().map(|checked| checked.check).collect()
    }

    #[test]
    fn steps_run_unless_the_static_tests_alone_are_wanted() {
        let both = "updateGraph: replaces-mode\nfbc: {enabled: true}\n";
        assert_eq!(found(both, false), ["certification-project-check", "read-config"]);
        assert!(found(both, true).is_empty());
        assert!(found("cert_project_id: x\nfbc: {enabled: true}\n", false).is_empty());
        assert!(found("cert_project_id: x\nupdateGraph: replaces-mode\n", false).is_empty());
    }
}
