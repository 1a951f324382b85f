//! Compares the state of an operator in the cluster after OLM has installed it with the rules' findings.

use std::collections::BTreeSet;

use olmkit::diagnostics::Finding;
use serde_json::Value;

use super::End;
use super::installed::Installed;
use super::trial::Trial;
use crate::answer::Answer;
use crate::server::Server;
use crate::tally::Tally;

/// Rules after which OLM does not get the ClusterServiceVersion to succeed.
const FATAL: [&str; 6] = ["HOOK-1", "HOOK-2", "HOOK-3", "HOOK-4", "HOOK-6", "COPY-1"];

/// Asks about all claims.
pub async fn judge(
    server: &Server,
    scoped: &BTreeSet<(String, String)>,
    trial: &Trial<'_>,
    end: &End,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let operator = Installed::new(server, trial).await?;
    let ended = Answer::new(format!("{} {}", end.phase, end.message));
    let mut count = |claim: &'static str, rules: &[&str], happens: bool, answer: &Answer| {
        let about = (trial.subject.bundle.as_str(), trial.mode.as_str());
        tally.count(claim, about, &said(trial, rules), happens, answer);
    };
    count(
        "KUBE-2, KUBE-3: the cluster lacks the API of an object",
        &["KUBE-2", "KUBE-3"],
        !trial.foreign.is_empty(),
        &Answer::new(kinds(&trial.foreign)),
    );
    count(
        "HOOK-1 to HOOK-4, HOOK-6, COPY-1: the ClusterServiceVersion does not succeed",
        &FATAL,
        !end.succeeded(),
        &ended,
    );
    if end.phase.is_empty() {
        // Without a ClusterServiceVersion there are no permissions to test.
        return Ok(());
    }
    let powerless = operator.without_rights().await?;
    count(
        "RBAC-1: the account of a Deployment does not exist, or may do nothing",
        &["RBAC-1"],
        !powerless.is_empty(),
        &Answer::new(powerless.join(", ")),
    );
    let unused = match powerless.is_empty() {
        true => Vec::new(),
        false => operator.unused_accounts().await?,
    };
    count(
        "RBAC-2: OLM makes an account that no Deployment uses, while one of a Deployment may do nothing",
        &["RBAC-2"],
        !unused.is_empty(),
        &Answer::new(unused.join(", ")),
    );
    let unwatched = operator.unwatched().await?;
    count(
        "RBAC-3: the operator may not list and watch an API that it owns",
        // If only one namespace is watched, RBAC-5 reports permissions for cluster-scoped resources.
        if unwatched.is_empty() {
            &["RBAC-3"]
        } else {
            &["RBAC-3", "RBAC-5"]
        },
        !unwatched.is_empty(),
        &Answer::new(unwatched.join(", ")),
    );
    if let Some(leaderless) = operator.leaderless().await? {
        count(
            "RBAC-4: an operator that elects a leader may not write leases",
            &["RBAC-4"],
            !leaderless.is_empty(),
            &Answer::new(leaderless.join(", ")),
        );
    }
    if trial.target().is_some() {
        let refused = operator.refused_for_the_cluster(scoped).await?;
        count(
            "RBAC-5: installed for one namespace, the operator is not granted what is not namespaced",
            &["RBAC-5"],
            !refused.is_empty(),
            &Answer::new(refused.join(", ")),
        );
    }
    let mighty = operator.accounts_that_may("*", "*", "*", true).await?;
    count(
        "RBAC-6: the operator may do everything",
        &["RBAC-6"],
        !mighty.is_empty(),
        &Answer::new(mighty.join(", ")),
    );
    let elsewhere = operator.bound_elsewhere().await?;
    count(
        "RBAC-8: a binding names an account of the operator in another namespace",
        &["RBAC-8"],
        !elsewhere.is_empty(),
        &Answer::new(elsewhere.join(", ")),
    );
    let mute = operator.without_status().await?;
    count(
        "RBAC-9: the operator may write objects, but not their status",
        &["RBAC-9"],
        !mute.is_empty(),
        &Answer::new(mute.join(", ")),
    );
    let foreign = operator.converted_by_others().await?;
    count(
        "HOOK-7: OLM does not change the conversion webhook of a CRD, and several versions are served",
        &["HOOK-7"],
        !foreign.is_empty(),
        &Answer::new(foreign.join(", ")),
    );
    let missing = operator.missing_certificates().await?;
    count(
        "CERT-1: nothing creates the Secret with a certificate that a pod needs",
        &["CERT-1"],
        !missing.is_empty(),
        &Answer::new(missing.join(", ")),
    );
    Ok(())
}

fn said(trial: &Trial<'_>, rules: &[&str]) -> Vec<Finding> {
    let findings = trial.subject.findings.iter();
    findings
        .filter(|finding| rules.contains(&finding.rule))
        .cloned()
        .collect()
}

fn kinds(objects: &[Value]) -> String {
    let all: BTreeSet<String> = objects.iter().map(|object| object["kind"].to_string()).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}
