//! `olmv1::resolve`: the bundle or the error that operator-controller 1.11's resolver returns for requests to the
//! catalogs of the recordings. The answers are stored here, the catalogs in `../shared/corpus/catalogs`.

use olmkit::catalog::load;
use olmkit::olmv1::{Installed, Policy, Request, Source, VersionRange, resolve};
use serde::Deserialize;
use test_support::corpus;

use super::count;

/// The answers about one package.
#[derive(Deserialize)]
struct Recording {
    catalog: String,
    package: String,
    answers: Vec<Answer>,
}

/// The request, and the answer: a bundle, or an error after `!`.
#[derive(Deserialize)]
struct Answer(String, String, String, String, u8, String);

#[test]
fn the_choice_is_that_of_olm_v1() {
    let Some(root) = corpus("catalogs") else { return };
    let recordings = serde_json::Deserializer::from_str(include_str!("data/resolutions.json")).into_iter::<Recording>();
    let (mut asked, mut wrong) = (0, Vec::new());
    for recording in recordings {
        let Recording {
            catalog,
            package,
            answers,
        } = recording.unwrap();
        let sources = [Source {
            name: "c".to_owned(),
            priority: 0,
            catalog: load::directory(&root.join(&catalog)).unwrap(),
        }];
        for answer in answers {
            asked += 1;
            let given = ask(&package, &answer, &sources);
            if given != answer.5 {
                let Answer(name, _, range, channels, policy, wanted) = &answer;
                wrong.push(format!(
                    "{catalog}: {package} from {name:?} to {range:?} in {channels:?} (policy {policy}): {given} instead of {wanted}"
                ));
            }
        }
    }
    count("resolutions", asked, &wrong);
}

fn ask(package: &str, answer: &Answer, sources: &[Source]) -> String {
    let Answer(name, version, range, channels, policy, _) = answer;
    let request = Request {
        package: package.to_owned(),
        version: (!range.is_empty()).then(|| VersionRange::parse(range).unwrap()),
        channels: channels
            .split(',')
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect(),
        installed: (!name.is_empty()).then(|| Installed::new(name, version).unwrap()),
        policy: if *policy == 1 {
            Policy::SelfCertified
        } else {
            Policy::CatalogProvided
        },
    };
    let resolution = resolve(&request, sources);
    match (resolution.chosen(), &resolution.refusal) {
        (Some(chosen), _) => chosen.bundle.clone(),
        (None, Some(refusal)) => format!("!{refusal}"),
        (None, None) => "!".to_owned(),
    }
}
