//! OLM v1's rejections and their reasons.

use olmkit::bundle::load::{self, Tree};
use olmkit::olmv1::{self, Bundle, Gates, InstallMode, Options};
use serde_json::{Map, Value, json};
use test_support::corpus;

use super::{count, lines, made_up, real};

/// Our answer in the recorded form. An empty string, for accepted bundles, is recorded only for real bundles.
fn answer(tree: &Tree, asked_of_real_bundles: bool) -> Value {
    let mut said = Map::new();
    let read = Bundle::read(tree);
    // The other loader's parsed objects are reused.
    let loaded = load::read(tree.clone(), "bundle").bundle;
    assert_eq!(format!("{:?}", Bundle::from_loaded(&loaded)), format!("{read:?}"));
    let bundle = match read {
        Ok(bundle) => bundle,
        Err(error) => return json!({"load": error.to_string()}),
    };
    let modes = bundle.install_modes();
    let listed = bundle.csv.value.pointer("/spec/installModes").and_then(Value::as_array);
    let supported: Vec<&Value> = listed
        .into_iter()
        .flatten()
        .filter(|mode| mode["supported"] == true)
        .map(|mode| &mode["type"])
        .collect();
    said.insert("modes".into(), json!(supported));
    said.insert("name".into(), bundle.csv.name().into());
    let webhooks = bundle
        .csv
        .value
        .pointer("/spec/webhookdefinitions")
        .and_then(Value::as_array);
    if let Some(webhooks) = webhooks.filter(|webhooks| !webhooks.is_empty()) {
        said.insert("webhooks".into(), webhooks.len().into());
    }
    let mut validators: Vec<(&str, Vec<String>)> = Vec::new();
    for complaint in olmv1::complaints(&bundle, Gates::default()) {
        match validators.last_mut() {
            Some((name, errors)) if *name == complaint.validator => errors.push(complaint.message),
            _ => validators.push((complaint.validator, vec![complaint.message])),
        }
    }
    if !validators.is_empty() {
        let entry = |(name, errors): &(&str, Vec<String>)| json!({"errors": errors, "name": name});
        said.insert("validators".into(), validators.iter().map(entry).collect());
    }
    let mut options = Options::new("install-ns");
    options.gates = Gates::default();
    let standard = olmv1::render(&bundle, &options).map_err(|error| error.to_string());
    options.gates = Gates::experimental();
    let watch = if modes.has(InstallMode::AllNamespaces) {
        None
    } else if modes.has(InstallMode::OwnNamespace) {
        Some("install-ns")
    } else if modes.has(InstallMode::SingleNamespace) {
        Some("watch-ns")
    } else {
        None
    };
    if let Some(watch) = watch {
        options.config = json!({"watchNamespace": watch});
        said.insert("watch".into(), watch.into());
    }
    let experimental = olmv1::render(&bundle, &options).map_err(|error| error.to_string());
    if let Err(error) = &standard {
        said.insert("standard".into(), error.clone().into());
    }
    match (&standard, &experimental) {
        (standard, Ok(objects)) => {
            said.insert("objects".into(), objects.len().into());
            if standard.is_err() && asked_of_real_bundles {
                said.insert("experimental".into(), "".into());
            }
        }
        (Err(standard), Err(experimental)) if standard == experimental => {}
        (_, Err(experimental)) => {
            said.insert("experimental".into(), experimental.clone().into());
        }
    }
    if let Some(dependency) = olmv1::dependencies(&bundle, tree).first() {
        let message = dependency.message(bundle.csv.name());
        said.insert("resolve".into(), message.into());
    }
    Value::Object(said)
}

/// The recorded answer without parts that are not tested here: a bundle that opm cannot render is never in a catalog.
fn recorded(line: &Value) -> Value {
    let mut said = line.as_object().unwrap().clone();
    for key in ["bundle", "input", "catalog", "duplicates"] {
        said.remove(key);
    }
    Value::Object(said)
}

fn differ(name: &str, theirs: &Value, ours: &Value) -> Option<String> {
    // A bundle that opm cannot render has no properties.
    let mut ours = ours.clone();
    if theirs.get("catalog").is_some() {
        ours.as_object_mut().unwrap().remove("resolve");
    }
    let theirs = recorded(theirs);
    (theirs != ours).then(|| format!("{name}\n  OLM v1: {theirs}\n  olmkit: {ours}"))
}

#[test]
fn refusals_of_real_bundles_are_those_of_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let (mut asked, mut wrong) = (0, Vec::new());
    for line in lines(&root.join("refusals.jsonl")) {
        let Some(tree) = real(&root, &line, "bundle", "input") else {
            continue;
        };
        asked += 1;
        wrong.extend(differ(line["bundle"].as_str().unwrap(), &line, &answer(&tree, true)));
    }
    count("refusals of real bundles", asked, &wrong);
    assert!(asked >= 82, "{asked}");
}

#[test]
fn refusals_of_made_up_bundles_are_those_of_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let (mut asked, mut wrong) = (0, Vec::new());
    for line in lines(&root.join("synthetic.jsonl")) {
        asked += 1;
        let ours = answer(&made_up(&line["files"]), false);
        wrong.extend(differ(line["name"].as_str().unwrap(), &line["check"], &ours));
    }
    count("refusals of made-up bundles", asked, &wrong);
    assert_eq!(asked, 68);
}
