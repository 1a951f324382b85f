//! Compares every call with the recorded answers of `opm serve`. Without the recordings (see `catalog_corpus`) the test
//! prints this and passes.

use std::path::PathBuf;

use olmkit_serve::{probe, source};
use serde_json::Value;

use crate::client::{call, normal};
use crate::{connect, serve};
use test_support::corpus;

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_opm_serve() {
    let Some(corpus) = corpus("") else { return };
    let (mut equal, mut wrong) = (0, Vec::new());
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("expected/serve"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let index = source::index(&corpus.join("catalogs").join(&name), source::Options::default());
        let (address, running) = serve(index.unwrap().0).await;
        let channel = connect(address).await;
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let mut expected: Value = serde_json::from_str(line).unwrap();
            let entries = expected.as_object_mut().unwrap();
            let rpc = entries.remove("rpc").unwrap();
            let request = entries.remove("request").unwrap();
            let rpc = rpc.as_str().unwrap();
            let Some(ours) = call(channel.clone(), rpc, &request).await else {
                assert!(
                    rpc.ends_with("Health/Check"),
                    "a call that this test does not know: {rpc}"
                );
                let second = std::time::Duration::from_secs(1);
                let service = request["service"].as_str().unwrap_or_default();
                probe::check(&address.to_string(), service, second, second)
                    .await
                    .unwrap();
                equal += 1;
                continue;
            };
            // Of several entries that replace a bundle opm names any. Both answers must be bundles of the channel.
            let arbitrary = rpc == "GetBundleThatReplaces"
                && ours["response"]["channelName"].is_string()
                && ours["response"]["channelName"] == expected["response"]["channelName"];
            if normal(&ours) == normal(&expected) || arbitrary {
                equal += 1;
            } else {
                let show = |value: &Value| value.to_string().chars().take(600).collect::<String>();
                wrong.push(format!(
                    "{name} {rpc} {request}\n  ours   {}\n  theirs {}",
                    show(&ours),
                    show(&expected)
                ));
            }
        }
        running.abort();
    }
    println!("registry API: {equal} answers equal, {} different", wrong.len());
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.into_iter().take(12).collect::<Vec<_>>().join("\n")
    );
}
