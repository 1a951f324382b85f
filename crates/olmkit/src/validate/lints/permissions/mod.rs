//! RBAC: compares the permissions of the operator with its visible needs.

pub(crate) mod accounts;
pub(crate) mod excess;
mod grants;
pub(crate) mod needs;
pub(crate) mod scope;

use crate::validate::checked::Checked;
use crate::validate::context::Context;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = accounts::bindings(context);
    if let Some(csv) = context.csv() {
        if let Some(too_many) = grants::too_many(context, &csv) {
            let checked = Checked::new(&needs::RBAC_3, too_many).at(csv.object, "/spec/install/spec");
            findings.push(checked.hint("merge rules with the same groups and verbs, or use wildcards"));
            return findings;
        }
        findings.extend(accounts::service_accounts(context, &csv));
        findings.extend(needs::owned_apis(context, &csv));
        findings.extend(needs::status(context, &csv));
        findings.extend(needs::leader_election(context, &csv));
        findings.extend(scope::check(context, &csv));
        findings.extend(excess::check(&csv));
    }
    findings
}
