//! A memcached client that selects servers by rendezvous hashing over their names, as the examples in `docs/memcached/clients.md`
//! do. It runs in the cluster's network, and resolves a name with the cluster's DNS server each time it connects.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

/// A server that does not answer for this long has failed.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub struct Settings {
    #[command(subcommand)]
    action: Action,
    /// Addresses of the servers, as the operator publishes them
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// The cluster's DNS server
    #[arg(long)]
    dns: Ipv4Addr,
    /// Number of keys
    #[arg(long)]
    keys: usize,
}

#[derive(Subcommand)]
enum Action {
    /// Store all keys
    Store,
    /// Print the number of keys that each server has, in the order of the servers
    Count,
    /// Print the addresses of the servers' names
    Resolve,
    /// Read until a file exists
    Watch {
        /// The file that ends the command
        #[arg(long)]
        until: PathBuf,
        /// Store missing keys again
        #[arg(long)]
        fill: bool,
    },
}

/// Runs the client, and prints its result as JSON.
pub fn client(settings: &Settings) -> anyhow::Result<()> {
    let result = match settings.action {
        Action::Store => {
            let mut servers = settings.servers()?;
            for key in 0..settings.keys {
                servers.store(key).with_context(|| format!("cannot store key {key}"))?;
            }
            json!({})
        }
        Action::Count => {
            let mut servers = settings.servers()?;
            let mut found = vec![0; settings.servers.len()];
            let mut all = found.clone();
            for key in 0..settings.keys {
                let at = servers.of(key);
                let count = usize::from(servers.read(key).with_context(|| format!("cannot read key {key}"))?);
                *all.get_mut(at).context("no server")? += 1;
                *found.get_mut(at).context("no server")? += count;
            }
            json!({ "found": found, "stored": all })
        }
        Action::Resolve => {
            let names = settings.servers.iter();
            let all = names.map(|name| resolve(name.split(':').next().unwrap_or(name), settings.dns));
            let all: io::Result<Vec<Vec<Ipv4Addr>>> = all.collect();
            json!({ "addresses": all.context("cannot resolve a server")?.concat() })
        }
        Action::Watch { ref until, fill } => watch(settings, until, fill)?,
    };
    println!("{result}");
    Ok(())
}

/// Reads a key every five milliseconds, and counts failed reads. A second client reads all keys again and again, and counts those that
/// it cannot read.
fn watch(settings: &Settings, until: &Path, fill: bool) -> anyhow::Result<serde_json::Value> {
    let (mut reader, mut scanner) = (settings.servers()?, settings.servers()?);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let scan = scope.spawn(|| {
            let (mut scans, mut most) = (0, 0);
            while !end.load(Ordering::Relaxed) {
                let missing = scanner.missing(settings.keys);
                (scans, most) = (scans + 1, most.max(missing.len()));
                if fill {
                    for key in missing {
                        // The server may not run yet. The next scan repeats this.
                        let _ = scanner.store(key);
                    }
                }
            }
            (scans, most)
        });
        let read = scope.spawn(|| {
            let (mut reads, mut failed) = (0, 0);
            while !end.load(Ordering::Relaxed) {
                // Consecutive numbers belong to random servers.
                let is_failed = reader.read(reads % settings.keys.max(1)).is_err();
                (reads, failed) = (reads + 1, failed + usize::from(is_failed));
                thread::sleep(Duration::from_millis(5));
            }
            (reads, failed)
        });
        while !until.exists() {
            thread::sleep(Duration::from_millis(100));
        }
        end.store(true, Ordering::Relaxed);
        let ended = |_| anyhow::anyhow!("a thread has failed");
        let ((scans, most), (reads, failed)) = (scan.join().map_err(ended)?, read.join().map_err(ended)?);
        Ok(json!({ "scans": scans, "mostMissing": most, "reads": reads, "failed": failed }))
    })
}

impl Settings {
    fn servers(&self) -> anyhow::Result<Servers> {
        let server = |address: &String| -> anyhow::Result<Server> {
            let (name, port) = address.rsplit_once(':').context("the address has no port")?;
            Ok(Server {
                name: name.to_owned(),
                port: port.parse()?,
                connection: None,
            })
        };
        Ok(Servers {
            servers: self.servers.iter().map(server).collect::<anyhow::Result<_>>()?,
            dns: self.dns,
        })
    }
}

/// The servers, and a connection to each.
struct Servers {
    servers: Vec<Server>,
    dns: Ipv4Addr,
}

struct Server {
    name: String,
    port: u16,
    connection: Option<BufReader<TcpStream>>,
}

impl Servers {
    /// The number of the key's server: the one whose name has the highest hash with the key.
    fn of(&self, key: usize) -> usize {
        let score = |server: &Server| {
            let mut hasher = DefaultHasher::new();
            (&server.name, server.port, key).hash(&mut hasher);
            hasher.finish()
        };
        let best = self.servers.iter().enumerate().max_by_key(|(_, server)| score(server));
        best.map_or(0, |(at, _)| at)
    }

    fn store(&mut self, key: usize) -> io::Result<()> {
        let value = format!("{key:01000}");
        let answer = self.ask(key, &format!("set key{key} 0 0 {}\r\n{value}\r\n", value.len()))?;
        (answer == "STORED\r\n")
            .then_some(())
            .ok_or_else(|| io::Error::other(answer))
    }

    /// Returns true if the server has the key.
    fn read(&mut self, key: usize) -> io::Result<bool> {
        let answer = self.ask(key, &format!("get key{key}\r\n"))?;
        if answer == "END\r\n" {
            return Ok(false);
        }
        let value = format!("VALUE key{key} 0 1000\r\n{key:01000}\r\nEND\r\n");
        (answer == value)
            .then_some(true)
            .ok_or_else(|| io::Error::other(answer))
    }

    /// Keys that cannot be read. If a server does not answer, all of its keys are missing.
    fn missing(&mut self, keys: usize) -> Vec<usize> {
        let mut failed = vec![false; self.servers.len()];
        let mut missing = Vec::new();
        for key in 0..keys {
            let at = self.of(key);
            let Some(is_failed) = failed.get_mut(at) else { continue };
            if !*is_failed {
                match self.read(key) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(_) => *is_failed = true,
                }
            }
            missing.push(key);
        }
        missing
    }

    /// Sends a request to the key's server. After a failure the next request connects again.
    fn ask(&mut self, key: usize, request: &str) -> io::Result<String> {
        let (at, dns) = (self.of(key), self.dns);
        let server = self.servers.get_mut(at).ok_or(io::ErrorKind::NotFound)?;
        let mut connection = match server.connection.take() {
            Some(connection) => connection,
            None => server.connect(dns)?,
        };
        let answer = exchange(&mut connection, request)?;
        server.connection = Some(connection);
        Ok(answer)
    }
}

impl Server {
    fn connect(&self, dns: Ipv4Addr) -> io::Result<BufReader<TcpStream>> {
        let found = resolve(&self.name, dns)?;
        let address = IpAddr::V4(*found.first().ok_or(io::ErrorKind::NotFound)?);
        let stream = TcpStream::connect_timeout(&(address, self.port).into(), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

/// Reads the answer up to its last line.
fn exchange(connection: &mut BufReader<TcpStream>, request: &str) -> io::Result<String> {
    connection.get_mut().write_all(request.as_bytes())?;
    let mut answer = String::new();
    loop {
        let from = answer.len();
        if connection.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = answer.get(from..).unwrap_or_default();
        if ["END\r\n", "STORED\r\n"].contains(&line) || line.contains("ERROR") {
            return Ok(answer);
        }
    }
}

/// The IPv4 addresses of a name in the cluster.
fn resolve(name: &str, dns: Ipv4Addr) -> io::Result<Vec<Ipv4Addr>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((dns, 53))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // One question, and recursion.
    let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').chain(["cluster", "local"]) {
        query.push(u8::try_from(label.len()).map_err(io::Error::other)?);
        query.extend(label.as_bytes());
    }
    // The root, type A, class IN.
    query.extend([0, 0, 1, 0, 1]);
    socket.send(&query)?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(addresses(answer.get(..length).unwrap_or_default(), query.len()))
}

/// The addresses in a DNS answer whose question ends at `at`.
fn addresses(answer: &[u8], mut at: usize) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    while let Some((address, end)) = record(answer, at) {
        found.extend(address);
        at = end;
    }
    found
}

/// The address in the record of a DNS answer that begins at `at`, if it has one, and the end of the record.
fn record(answer: &[u8], mut at: usize) -> Option<(Option<Ipv4Addr>, usize)> {
    // The name is a pointer to the question, or labels.
    while *answer.get(at)? != 0 {
        if *answer.get(at)? >= 0xc0 {
            at += 1;
            break;
        }
        at += usize::from(*answer.get(at)?) + 1;
    }
    let head: &[u8; 10] = answer.get(at + 1..at + 11)?.try_into().ok()?;
    let length = usize::from(u16::from_be_bytes([head[8], head[9]]));
    let data = answer.get(at + 11..at + 11 + length)?;
    let address = <[u8; 4]>::try_from(data).ok().filter(|_| head[..2] == [0, 1]);
    Some((address.map(Ipv4Addr::from), at + 11 + length))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_among_other_records() {
        // Header and question take five bytes here. An alias record comes before the address.
        let alias = [0xc0, 0, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 0];
        let found = [0xc0, 0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 88, 0, 7];
        let answer = [&[0; 5][..], &alias, &found, &alias, &found].concat();
        assert_eq!(addresses(&answer, 5), [Ipv4Addr::new(10, 88, 0, 7); 2]);
        assert!(addresses(&answer[..20], 5).is_empty());
    }

    #[test]
    fn one_server_more_takes_keys_only_from_the_others() {
        let servers = |names: &[&str]| {
            let settings = Settings {
                action: Action::Store,
                servers: names.iter().map(|name| (*name).to_owned()).collect(),
                dns: Ipv4Addr::LOCALHOST,
                keys: 0,
            };
            settings.servers().unwrap()
        };
        let (two, three) = (servers(&["a:1", "b:1"]), servers(&["a:1", "b:1", "c:1"]));
        let moved: Vec<usize> = (0..300).filter(|key| two.of(*key) != three.of(*key)).collect();
        assert!(moved.iter().all(|key| three.of(*key) == 2));
        assert!((50..150).contains(&moved.len()), "{}", moved.len());
    }
}
