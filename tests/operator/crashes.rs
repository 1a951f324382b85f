//! Storms in which API server and etcd crash and come back.
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::DeleteParams};
use kube_testbed::Server;

use crate::{lab::Lab, storms::Storm};

/// A crash: of which server, after which pause, for how long. Half a minute is longer than a lease.
type Crash = (Server, Duration, Duration);

const fn crash(server: Server, after: u64, down: u64) -> Crash {
    (server, Duration::from_millis(after), Duration::from_millis(down))
}

/// Storms side by side, while the servers crash. Returns how many writes were checked.
async fn storms(seeds: impl IntoIterator<Item = u64>, steps: usize, crashes: &[Crash]) -> usize {
    let mut storms = Vec::new();
    for seed in seeds {
        let lab = Lab::fragile(&format!("storm-{seed}")).await;
        storms.push((seed, Storm::begin(lab, seed).await));
    }
    let plane = Lab::fragile(&format!("crashes-{}", storms[0].0)).await.plane();
    let crashing = async {
        for (server, after, down) in crashes {
            tokio::time::sleep(*after).await;
            plane.crash(*server, *down).await.unwrap();
            println!("{server:?} was down for {down:?}");
        }
    };
    let raging = futures::future::join_all(storms.iter_mut().map(|(_, storm)| storm.rage(steps)));
    tokio::join!(raging, crashing);
    let client = plane.client().await.unwrap();
    let mut checked = 0;
    for (seed, storm) in storms {
        checked += storm.settle().await;
        let _ = Api::<Namespace>::all(client.clone())
            .delete(&format!("storm-{seed}"), &DeleteParams::default())
            .await;
    }
    checked
}

#[tokio::test]
async fn storms_with_crashes_of_etcd_and_api_server() {
    let crashes = [
        crash(Server::ApiServer, 2000, 500),
        crash(Server::Etcd, 2000, 1500),
        // The leader cannot renew, and ends.
        crash(Server::ApiServer, 2000, 13_000),
    ];
    storms([51, 53], 14, &crashes).await;
}

/// The fast form: waves of storms side by side, in each of which the servers crash at random.
///
/// `STORMS=100 cargo test --test operator many_storms_with_crashes -- --ignored --nocapture`, with the variables of
/// `many_storms`.
#[tokio::test]
#[ignore = "four seconds for each storm on two idle cores"]
async fn many_storms_with_crashes() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (count, first) = (number("STORMS", 16), number("STORMS_FROM", 50_000));
    let at_once = number("STORMS_AT_ONCE", 8);
    let started = Instant::now();
    let (mut done, mut checked, mut crashed) = (0, 0, 0);
    while done < count {
        let wave = at_once.min(count - done);
        let seed = first + 2 * done;
        let mut random = fastrand::Rng::with_seed(seed);
        let crashes: Vec<Crash> = (0..3)
            .map(|_| {
                let server = *random.choice([Server::ApiServer, Server::Etcd].iter()).unwrap();
                // One in four is longer than the leader may go without a renewal.
                let down = if random.u8(0..4) == 0 {
                    12_000
                } else {
                    random.u64(100..4000)
                };
                crash(server, random.u64(500..4000), down)
            })
            .collect();
        checked += storms((0..wave).map(|index| seed + 2 * index), 12, &crashes).await;
        (done, crashed) = (done + wave, crashed + crashes.len());
        let seconds = started.elapsed().as_secs();
        println!("{done} of {count} storms passed, {crashed} crashes, {checked} writes checked, {seconds} s");
    }
}
