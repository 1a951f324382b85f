//! CRD findings compared with the answers of the API server's own code about CRDs and random edits of them, which `dev/crd-vectors`
//! writes. A small recording is always compared. `OLMKIT_CRD_ANSWERS` names a file with more answers.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use olmkit::crd::validation::{ApiVersion, validate_decoded, validate_schemas};
use olmkit_go::structs::decode::{decode, misfits};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde_json::Value;

/// The first finding about a CRD, if there is one.
fn first_finding(crd: &Value) -> Option<String> {
    let key = ApiVersion::V1.type_name();
    if let Some(misfit) = misfits(crd, key, false).into_iter().next() {
        return Some(misfit.message);
    }
    let decoded = match decode(crd, key, false) {
        Ok(decoded) => decoded,
        Err(error) => return Some(error.message),
    };
    let mut found = validate_decoded(&decoded, ApiVersion::V1);
    found.extend(validate_schemas(&decoded, ApiVersion::V1));
    // The API server writes the status itself.
    found.retain(|finding| !finding.field.starts_with("status."));
    found.into_iter().next().map(|finding| finding.message)
}

/// An edit that we and the API server judge differently, with the message of the one that rejects it.
struct Difference {
    edit: String,
    message: String,
    is_missed: bool,
}

/// Compares one answer: whether the API server rejects the CRD, and a difference.
fn compare(line: &str) -> (bool, Option<Difference>) {
    let answer: Value = serde_json::from_str(line).expect("answer");
    let theirs = answer["errors"].as_array().expect("errors").first();
    let ours = first_finding(&answer["crd"]);
    let message = match (theirs, &ours) {
        (Some(theirs), None) => theirs.as_str().unwrap_or_default().to_owned(),
        (None, Some(ours)) => ours.clone(),
        _ => return (theirs.is_some(), None),
    };
    let difference = Difference {
        edit: format!("{} {}", answer["file"], answer["edit"]),
        message,
        is_missed: ours.is_none(),
    };
    (theirs.is_some(), Some(difference))
}

/// The common part of messages with one cause: the words after the field, without values.
fn cause(message: &str) -> String {
    let detail = message.split_once(": ").map_or(message, |(_, detail)| detail);
    let detail = detail.rsplit_once("\": ").map_or(detail, |(_, detail)| detail);
    detail.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

/// Written by `dev/crd-vectors/record.sh`: rules and their costs, formats, defaults.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/library/rules/schema-answers.jsonl");

#[test]
fn schemas_are_judged_as_by_the_api_servers_own_code() {
    let (asked, rejected, missed) = judge(RECORDED.as_ref());
    assert!(
        asked > 200 && rejected > 50 && asked - rejected > 50,
        "{asked} answers, {rejected} rejected"
    );
    assert_eq!(missed, 0, "recorded answers");
    if let Some(answers) = std::env::var_os("OLMKIT_CRD_ANSWERS") {
        let (_, rejected, missed) = judge(Path::new(&answers));
        assert!(missed * 100 <= rejected, "{missed} of {rejected} missed");
    }
}

/// Compares a file with answers: the numbers of definitions, of rejected and of missed ones. No finding may be wrong.
fn judge(answers: &Path) -> (usize, usize, usize) {
    let file = BufReader::new(std::fs::File::open(answers).expect("answers"));
    let (mut asked, mut rejected, mut differences) = (0, 0, Vec::new());
    let mut lines = file.lines().map(|line| line.expect("line")).peekable();
    while lines.peek().is_some() {
        let some: Vec<String> = lines.by_ref().take(256).collect();
        let compared: Vec<_> = some.par_iter().map(|line| compare(line)).collect();
        asked += compared.len();
        rejected += compared.iter().filter(|(is_rejected, _)| *is_rejected).count();
        differences.extend(compared.into_iter().filter_map(|(_, difference)| difference));
    }
    let (missed, wrong): (Vec<_>, Vec<_>) = differences.iter().partition(|difference| difference.is_missed);
    println!(
        "{asked} definitions, {rejected} rejected, {} missed, {} wrong",
        missed.len(),
        wrong.len()
    );
    for (name, differences) in [("missed", &missed), ("wrong", &wrong)] {
        let mut causes = BTreeMap::new();
        for difference in differences {
            *causes.entry(cause(&difference.message)).or_insert(0) += 1;
            println!("{name}: {}\n    {}", difference.edit, difference.message);
        }
        for (cause, count) in causes {
            println!("{name} by cause: {count:5} {cause}");
        }
    }
    assert!(asked > 0, "no answers");
    assert!(wrong.is_empty(), "{} findings about accepted definitions", wrong.len());
    (asked, rejected, missed.len())
}
