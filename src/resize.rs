//! Changes the memory of servers while they run.
use std::{borrow::Cow, collections::HashMap, io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube_manager::{
    drift::fingerprint,
    events::Severity,
    health::memory,
    reconcile::{Context, Error, Outcome},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::{
    api::v1alpha1::{Memcached, MemcachedSpec},
    observed::Server,
    operand::{self, IN_PLACE},
    status::failed,
};

/// Servers of a Memcached that change their memory at the same time.
const AT_ONCE: usize = 16;

/// A server answers and releases memory within this time. The next reconcile continues.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer.
const ANSWER: u64 = 64 << 10;

/// The Memcached from which the pod template follows. While `rest` stays, it has the memory of the `live` template, because a change of the
/// template restarts the servers.
pub fn keep_memory<'m>(
    memcached: &'m Memcached,
    rest: &Value,
    live: impl FnOnce() -> Option<PodTemplateSpec>,
) -> Cow<'m, Memcached> {
    let mut kept = Cow::Borrowed(memcached);
    if memcached.spec.resizes_in_place() {
        let (rest, spec) = (fingerprint(rest), &mut kept.to_mut().spec);
        let recorded = live().and_then(|live| live.metadata?.annotations?.remove(IN_PLACE));
        let former = recorded.and_then(|recorded| serde_json::from_str(recorded.strip_prefix(&rest)?).ok());
        if let Some(former) = former {
            (spec.memory_limit_megabytes, spec.resources) = former;
        }
        let memory = json!([spec.memory_limit_megabytes, spec.resources]);
        let pods = spec.pod_template.get_or_insert_default();
        let annotations = pods.annotations.get_or_insert_default();
        annotations.insert(IN_PLACE.to_owned(), format!("{rest}{memory}"));
    }
    kept
}

/// The memory for items of the servers, by container ID. A container that restarts has its former memory.
#[derive(Default)]
pub struct Limits(Mutex<HashMap<String, i32>>);

impl Limits {
    /// Changes the memory of all servers that may change it in place. The outcome is ready when all have the memory of the spec.
    ///
    /// # Errors
    /// If the API server or a server rejects the change.
    pub async fn apply(&self, memcached: &Memcached, context: &Context<Memcached>) -> Result<Outcome, Error> {
        let spec = &memcached.spec;
        let mut servers = context.observed::<Server>();
        servers.retain(|server| spec.resizes_in_place() && server.memory.is_some());
        let changes = stream::iter(servers.clone()).map(|server| self.change(spec, server, context));
        let results: Vec<Result<bool, Error>> = changes.buffered(AT_ONCE).collect().await;
        let results = results.into_iter().collect::<Result<Vec<bool>, Error>>()?;
        let (all, done) = (results.len(), results.into_iter().filter(|is_done| *is_done).count());
        let items = spec.memory_limit_megabytes;
        let message = format!("{done} of {all} servers have {items} MiB for items");
        let memories = servers.iter().filter_map(|server| server.memory.as_ref());
        let failures = memories.filter_map(|memory| memory.failure.as_ref());
        Ok(match done < all {
            true => failed(&message, failures).unwrap_or_else(|| Outcome::waiting("ResizingMemory", message)),
            false => Outcome::ready(),
        })
    }

    /// Takes the next step of a server, and returns true if there is none. The container is larger than the items at each moment: it grows
    /// before them, and shrinks after them. The status reports servers that are not ready.
    async fn change(
        &self,
        spec: &MemcachedSpec,
        server: Arc<Server>,
        context: &Context<Memcached>,
    ) -> Result<bool, Error> {
        let (name, items, wanted) = (&server.name, spec.memory_limit_megabytes, operand::resources(spec));
        let (Some(now), Some((request, limit))) = (&server.memory, memory(&wanted)) else {
            return Ok(true);
        };
        let (mut is_set, has_room) = (false, now.limit >= limit);
        if let Some((address, container)) = &now.running {
            is_set = self.0.lock().await.get(container) == Some(&items);
            if has_room && !is_set {
                let result = timeout(PATIENCE, set_items(address, spec.container_port, items)).await;
                let error = |error| {
                    let message = format!("cannot change the memory of pod {name}: {error}");
                    Error::new("ResizeFailed", message)
                };
                result.unwrap_or_else(|late| Err(late.into())).map_err(error)?;
                let mut known = self.0.lock().await;
                // Containers that ended are never removed. The operator sends the commands again.
                if known.len() > 100_000 {
                    known.clear();
                }
                known.insert(container.clone(), items);
                is_set = true;
            }
        }
        if now.asked != (request, limit) && (is_set || !has_room) {
            context.resize(name, operand::MEMCACHED, &wanted).await?;
            let note = format!("pod {name}: memory limit {} to {} MiB", now.asked.1 >> 20, limit >> 20);
            context.event(Severity::Normal, "Resized", note);
            return Ok(false);
        }
        Ok(now.running.is_none() || is_set && now.limit == limit)
    }
}

/// Sets memcached's limit for items. Memcached keeps the pages above the limit until they are reassigned.
async fn set_items(address: &str, port: i32, mebibytes: i32) -> io::Result<()> {
    let port = u16::try_from(port).unwrap_or_default();
    let server = &mut BufReader::new(TcpStream::connect((address, port)).await?);
    let answer = ask(server, &format!("cache_memlimit {mebibytes}")).await?;
    if answer != "OK\r\n" {
        let answer = answer.trim_end();
        return Err(io::Error::other(format!(
            "memcached answers {answer:?} to cache_memlimit"
        )));
    }
    loop {
        let slabs = ask(server, "stats slabs").await?;
        let allocated = slabs
            .split_once("total_malloced ")
            .and_then(|(_, rest)| rest.lines().next()?.parse().ok());
        // The last page of a size class cannot be reassigned.
        if allocated.unwrap_or(0) <= i64::from(mebibytes) << 20
            || !ask(server, "slabs reassign -1 0").await?.starts_with(['O', 'B'])
        {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sends a command and returns the answer: statistics and a last line.
async fn ask(server: &mut BufReader<TcpStream>, command: &str) -> io::Result<String> {
    server.write_all(format!("{command}\r\n").as_bytes()).await?;
    let (mut lines, mut answer) = (server.take(ANSWER), String::new());
    loop {
        let start = answer.len();
        lines.read_line(&mut answer).await?;
        if !answer.get(start..).is_some_and(|last| last.starts_with("STAT ")) {
            return Ok(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;
    use crate::operand::{deployment, fixtures::memcached};

    /// A server that has two pages more than its limit, and releases one of them.
    async fn server(answer: &'static str) -> (i32, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async move {
            let mut client = BufReader::new(listener.accept().await.unwrap().0);
            let (mut commands, mut pages, mut line) = (Vec::new(), 66, String::new());
            while client.read_line(&mut line).await.unwrap() > 0 {
                let command = line.trim().to_owned();
                let reply = match command.as_str() {
                    "stats slabs" => format!("STAT active_slabs 2\r\nSTAT total_malloced {}\r\nEND", pages << 20),
                    "slabs reassign -1 0" if pages > 65 => {
                        pages -= 1;
                        "OK".to_owned()
                    }
                    "slabs reassign -1 0" => "NOSPARE source class has no spare pages".to_owned(),
                    _ => answer.to_owned(),
                };
                client.write_all(format!("{reply}\r\n").as_bytes()).await.unwrap();
                commands.push(command);
                line.clear();
            }
            commands
        };
        (port.into(), tokio::spawn(serve))
    }

    #[tokio::test]
    async fn pages_above_the_limit_are_released() {
        let (port, commands) = server("OK").await;
        set_items("127.0.0.1", port, 64).await.unwrap();
        let (read, release) = ("stats slabs", "slabs reassign -1 0");
        assert_eq!(
            commands.await.unwrap(),
            ["cache_memlimit 64", read, release, read, release]
        );
    }

    #[tokio::test]
    async fn a_server_that_rejects_the_command_is_reported() {
        let (port, _) = server("ERROR").await;
        let error = set_items("127.0.0.1", port, 64).await.unwrap_err();
        assert_eq!(error.to_string(), "memcached answers \"ERROR\" to cache_memlimit");
    }

    /// A server that closes the connection, and one that sends statistics without end.
    #[tokio::test]
    async fn the_answer_of_a_server_is_bounded() {
        for repeat in [0, 10_000] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(async move {
                let mut client = listener.accept().await.unwrap().0;
                client
                    .write_all("STAT a 1234567\r\n".repeat(repeat).as_bytes())
                    .await
                    .ok();
            });
            let mut server = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
            let length = ask(&mut server, "stats slabs").await.map_or(0, |answer| answer.len());
            assert!(length <= 64 << 10, "{length}");
        }
    }

    #[tokio::test]
    async fn nothing_changes_without_servers() {
        let resizing = memcached(&json!({ "warmCache": "ResizeInPlace" }));
        let context = Context::recording(&resizing);
        let outcome = Limits::default().apply(&resizing, &context).await.unwrap();
        assert!(outcome.is_ready());
    }

    /// The template of a Memcached with this spec and image, when `live` runs.
    fn template(spec: &Value, image: &str, live: Option<&PodTemplateSpec>) -> PodTemplateSpec {
        let mut spec = spec.clone();
        spec["warmCache"] = json!("ResizeInPlace");
        let memcached = memcached(&spec);
        let kept = keep_memory(&memcached, &json!([image]), || live.cloned());
        deployment(&kept, image).spec.unwrap().template
    }

    /// Memcached's option -m, and request and limit of the container.
    fn memory(template: &PodTemplateSpec) -> [String; 3] {
        let template = serde_json::to_value(template).unwrap();
        let container = &template["spec"]["containers"][0];
        let resources = &container["resources"];
        let memory = [
            &container["args"][1],
            &resources["requests"]["memory"],
            &resources["limits"]["memory"],
        ];
        memory.map(|text| text.as_str().unwrap().to_owned())
    }

    #[test]
    fn a_change_of_the_memory_alone_does_not_change_the_template() {
        let first = template(&json!({}), "m:1", None);
        assert_eq!(memory(&first), ["64", "128Mi", "128Mi"]);
        let grown = json!({ "memoryLimitMegabytes": 128, "resources": { "limits": { "memory": "1Gi" } } });
        assert_eq!(template(&grown, "m:1", Some(&first)), first);
        // An edit of the live template is reverted.
        let mut edited = first.clone();
        edited.spec.as_mut().unwrap().containers[0].args.as_mut().unwrap()[1] = "9".to_owned();
        assert_eq!(template(&grown, "m:1", Some(&edited)), first);
    }

    #[test]
    fn another_change_takes_the_memory_along() {
        let grown = json!({ "memoryLimitMegabytes": 1024 });
        let first = template(&json!({}), "m:1", None);
        assert_eq!(
            memory(&template(&grown, "m:2", Some(&first))),
            ["1024", "1328Mi", "1328Mi"]
        );
        let cold = deployment(&memcached(&json!({})), "m:1").spec.unwrap().template;
        assert_eq!(memory(&template(&grown, "m:1", Some(&cold)))[0], "1024");
    }

    #[test]
    fn the_mode_needs_no_shell_and_no_volume() {
        let pod = template(&json!({}), "m:1", None).spec.unwrap();
        let command = pod.containers[0].command.as_deref();
        assert_eq!((pod.volumes, command), (None, Some(&["memcached".to_owned()][..])));
        assert!(
            pod.containers[0].lifecycle.is_some(),
            "a deleted server runs for a moment"
        );
    }
}
