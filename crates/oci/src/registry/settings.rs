//! `registries.conf`: mirrors, insecure and blocked registries, short names (containers-registries.conf(5), version 2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer};

use super::error::Error;
use crate::Reference;
use crate::read::{limit_read, read_limited};

const FILE_LIMIT: u64 = 4 << 20;

/// Everything the settings files say.
#[derive(Debug, Clone, Default)]
pub struct Registries {
    rules: Vec<RegistryRule>,
    search: Vec<String>,
    aliases: BTreeMap<String, String>,
    pub(super) helpers: Option<Helpers>,
}

/// The credential helpers of all registries.
#[derive(Debug, Clone)]
pub(super) struct Helpers {
    /// Their names in order. `containers-auth.json` means the credential files.
    pub names: Vec<String>,
    /// The file with the setting.
    pub file: PathBuf,
}

/// Settings for all images whose name starts with a prefix.
#[derive(Debug, Clone)]
pub struct RegistryRule {
    /// Prefix of the matching names. `*.example.com` matches any host below.
    pub prefix: String,
    /// The replacement of the prefix.
    pub location: String,
    /// True if untrusted certificates and plain HTTP are accepted.
    pub insecure: bool,
    /// True if such images must not be used.
    pub blocked: bool,
    /// Where to look before the location itself.
    pub mirrors: Vec<Mirror>,
    /// The file with the setting.
    pub file: PathBuf,
}

/// A mirror of a registry.
#[derive(Debug, Clone)]
pub struct Mirror {
    /// The replacement of the prefix.
    pub location: String,
    /// True if untrusted certificates and plain HTTP are accepted.
    pub insecure: bool,
    /// The references that may be pulled from it.
    pub serves: MirrorUse,
}

/// The references that a mirror is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorUse {
    /// Any.
    All,
    /// Only references with a digest.
    DigestOnly,
    /// Only references without a digest.
    TagOnly,
}

/// One place to pull an image from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub registry: String,
    pub repository: String,
    pub insecure: bool,
}

#[derive(Deserialize)]
struct File {
    #[serde(default, rename = "unqualified-search-registries")]
    search: Option<Vec<String>>,
    #[serde(default)]
    registry: Vec<RegistryTable>,
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    #[serde(default, rename = "credential-helpers")]
    credential_helpers: Option<Vec<String>>,
    /// The first version of the format.
    #[serde(default)]
    registries: Option<FirstVersion>,
}

/// The lists of the first version. Each is in a separate table.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FirstVersion {
    search: List,
    insecure: List,
    block: List,
}

#[derive(Default, Deserialize)]
struct List {
    #[serde(default)]
    registries: Vec<String>,
}

impl FirstVersion {
    fn is_empty(&self) -> bool {
        let lists = [&self.search, &self.insecure, &self.block];
        lists.iter().all(|list| list.registries.is_empty())
    }

    /// The same settings in the second version.
    fn tables(&self) -> Vec<RegistryTable> {
        let mut names: Vec<&String> = self.insecure.registries.iter().chain(&self.block.registries).collect();
        names.sort();
        names.dedup();
        let table = |name: &String| RegistryTable {
            location: name.clone(),
            insecure: self.insecure.registries.contains(name),
            blocked: self.block.registries.contains(name),
            ..RegistryTable::default()
        };
        names.into_iter().map(table).collect()
    }
}

#[derive(Default, Deserialize)]
struct RegistryTable {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror: Vec<MirrorTable>,
    #[serde(default, rename = "mirror-by-digest-only")]
    by_digest_only: bool,
}

#[derive(Deserialize)]
struct MirrorTable {
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default, rename = "pull-from-mirror", deserialize_with = "mirror_use")]
    serves: Option<MirrorUse>,
}

/// An empty string is the same as nothing, as for skopeo.
fn mirror_use<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MirrorUse>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    MirrorUse::deserialize(text.into_deserializer()).map(Some)
}

impl Registries {
    /// Reads the settings. A file named by the caller or by `CONTAINERS_REGISTRIES_CONF` is the only one read.
    /// Otherwise the user's `registries.conf`, else the system's, and the files of both `registries.conf.d`.
    pub fn load(named: Option<&Path>) -> Result<Self, Error> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let mut registries = Self::default();
        if let Some(path) = named
            .map(Path::to_owned)
            .or_else(|| variable("CONTAINERS_REGISTRIES_CONF"))
        {
            // It may be a pipe, or /dev/null for no settings.
            let file = std::fs::File::open(&path).map_err(crate::Error::file("read", &path))?;
            registries.add(&path, &limit_read(&path, file, FILE_LIMIT)?)?;
            return Ok(registries);
        }
        let system = PathBuf::from("/etc/containers");
        let user = variable("XDG_CONFIG_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".config")))
            .map(|path| path.join("containers"));
        let folders: Vec<PathBuf> = [Some(system), user].into_iter().flatten().collect();
        let main = folders
            .iter()
            .rev()
            .map(|folder| folder.join("registries.conf"))
            .find(|path| path.is_file());
        if let Some(main) = main {
            registries.read(&main)?;
        }
        for folder in folders {
            for path in drop_ins(&folder.join("registries.conf.d")) {
                registries.read(&path)?;
            }
        }
        Ok(registries)
    }

    fn read(&mut self, path: &Path) -> Result<(), Error> {
        self.add(path, &read_limited(path, FILE_LIMIT)?)
    }

    fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let settings = |reason: String| Error::Settings {
            path: path.to_owned(),
            reason,
        };
        let text = std::str::from_utf8(bytes).map_err(|error| settings(error.to_string()))?;
        let mut file: File = toml::from_str(text).map_err(|error| settings(error.to_string()))?;
        if let Some(first) = file.registries.take().filter(|first| !first.is_empty()) {
            if !file.registry.is_empty() || file.search.as_ref().is_some_and(|search| !search.is_empty()) {
                let problem = "it mixes version 1 of the format ([registries.search], [registries.insecure], [registries.block]) with version 2";
                return Err(settings(problem.to_owned()));
            }
            file.registry = first.tables();
            file.search = Some(first.search.registries);
        }
        if let Some(search) = file.search {
            self.search = search;
        }
        if let Some(names) = file.credential_helpers.filter(|names| !names.is_empty()) {
            let file = path.to_owned();
            self.helpers = Some(Helpers { names, file });
        }
        self.aliases.extend(file.aliases);
        let tables = file.registry.into_iter();
        let rules: Vec<RegistryRule> = tables
            .map(|table| RegistryRule::from_table(table, path))
            .collect::<Result<_, _>>()
            .map_err(settings)?;
        check_conflicts(&rules).map_err(settings)?;
        // A later file replaces an earlier file's settings for the same prefix. In one file the first counts.
        self.rules
            .retain(|old| rules.iter().all(|rule| rule.prefix != old.prefix));
        for rule in rules {
            if self.rules.iter().all(|old| old.prefix != rule.prefix) {
                self.rules.push(rule);
            }
        }
        Ok(())
    }

    /// The full name of a short one, if an alias or a single search registry decides it.
    pub(super) fn complete(&self, reference: &Reference) -> Option<Reference> {
        if let Some(alias) = self.aliases.get(reference.repository()) {
            let full = Reference::parse(alias).ok()?;
            let registry = full.registry().ok()?.to_owned();
            let tail = reference.to_string();
            let tail = tail.strip_prefix(reference.repository()).unwrap_or_default();
            return Reference::parse(&format!("{registry}/{}{tail}", full.repository())).ok();
        }
        match self.search.as_slice() {
            [only] => Some(reference.with_registry(only)),
            _ => None,
        }
    }

    /// The rule with the longest prefix that fits an image.
    pub fn rule(&self, reference: &Reference) -> Option<&RegistryRule> {
        let name = reference.name();
        self.rules
            .iter()
            .filter(|rule| rule.rest(&name).is_some())
            .max_by_key(|rule| rule.prefix.len())
    }

    /// Where to look for an image, in order: mirrors first, the image's own registry last.
    pub(super) fn sources(&self, reference: &Reference) -> Result<Vec<Source>, Error> {
        let Some(rule) = self.rule(reference) else {
            return Ok(vec![own_source(reference, false)?]);
        };
        if rule.blocked {
            return Err(Error::Blocked {
                what: reference.to_string(),
                path: rule.file.clone(),
            });
        }
        let has_digest = reference.digest().is_some();
        let fits = |mirror: &&Mirror| match mirror.serves {
            MirrorUse::All => true,
            MirrorUse::DigestOnly => has_digest,
            MirrorUse::TagOnly => !has_digest,
        };
        let mut sources = Vec::new();
        for mirror in rule.mirrors.iter().filter(fits) {
            sources.push(rule.source(reference, &mirror.location, mirror.insecure)?);
        }
        sources.push(self.target(reference)?);
        Ok(sources)
    }

    /// Where to push an image: its own registry, as the rule relocates it. Mirrors are never pushed to.
    pub(super) fn target(&self, reference: &Reference) -> Result<Source, Error> {
        match self.rule(reference) {
            None => own_source(reference, false),
            Some(rule) if rule.blocked => Err(Error::Blocked {
                what: reference.to_string(),
                path: rule.file.clone(),
            }),
            Some(rule) if rule.location.is_empty() => own_source(reference, rule.insecure),
            Some(rule) => rule.source(reference, &rule.location, rule.insecure),
        }
    }
}

/// Fails if two tables of one file disagree about a registry: one of them might allow something that the other forbids.
fn check_conflicts(rules: &[RegistryRule]) -> Result<(), String> {
    for (number, rule) in rules.iter().enumerate() {
        for other in rules.iter().take(number).filter(|other| other.place() == rule.place()) {
            for (name, differs) in [
                ("insecure", other.insecure != rule.insecure),
                ("blocked", other.blocked != rule.blocked),
            ] {
                if differs {
                    return Err(format!(
                        "registry {:?} occurs twice with different values of {name:?}",
                        rule.place()
                    ));
                }
            }
        }
    }
    Ok(())
}

fn own_source(reference: &Reference, insecure: bool) -> Result<Source, Error> {
    let registry = reference.registry().map_err(crate::Error::from)?.to_owned();
    Ok(Source {
        registry,
        repository: reference.repository().to_owned(),
        insecure,
    })
}

impl RegistryRule {
    fn from_table(table: RegistryTable, file: &Path) -> Result<Self, String> {
        let prefix = if table.prefix.is_empty() {
            table.location.clone()
        } else {
            table.prefix
        };
        let prefix = prefix.trim_end_matches('/').to_owned();
        if prefix.is_empty() {
            return Err("a [[registry]] table needs a prefix or a location".to_owned());
        }
        let default = if table.by_digest_only {
            MirrorUse::DigestOnly
        } else {
            MirrorUse::All
        };
        let mirrors = table.mirror.into_iter().map(|mirror| Mirror {
            location: mirror.location.trim_end_matches('/').to_owned(),
            insecure: mirror.insecure,
            serves: mirror.serves.unwrap_or(default),
        });
        Ok(Self {
            prefix,
            location: table.location.trim_end_matches('/').to_owned(),
            insecure: table.insecure,
            blocked: table.blocked,
            mirrors: mirrors.collect(),
            file: file.to_owned(),
        })
    }

    /// The registry that the rule is about.
    fn place(&self) -> &str {
        if self.location.is_empty() {
            &self.prefix
        } else {
            &self.location
        }
    }

    /// The rest of a name after the prefix, if the name starts with it at a boundary.
    fn rest<'n>(&self, name: &'n str) -> Option<&'n str> {
        if let Some(suffix) = self.prefix.strip_prefix('*') {
            let end = name.find('/').unwrap_or(name.len());
            let (host, rest) = name.split_at(end);
            return (host.len() > suffix.len() && host.ends_with(suffix)).then_some(rest);
        }
        name.strip_prefix(&self.prefix)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn source(&self, reference: &Reference, location: &str, insecure: bool) -> Result<Source, Error> {
        let name = reference.name();
        let moved = format!("{location}{}", self.rest(&name).unwrap_or_default());
        let parsed = Reference::parse(&moved).and_then(|moved| Ok((moved.registry()?.to_owned(), moved)));
        let (registry, moved) = parsed.map_err(|error| Error::Settings {
            path: self.file.clone(),
            reason: format!("location {location:?} for prefix {:?}: {error}", self.prefix),
        })?;
        Ok(Source {
            registry,
            repository: moved.repository().to_owned(),
            insecure,
        })
    }
}

fn drop_ins(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registries(text: &str) -> Registries {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registries.conf");
        std::fs::write(&path, text).unwrap();
        Registries::load(Some(&path)).unwrap()
    }

    fn places(registries: &Registries, reference: &str) -> Vec<String> {
        let sources = registries.sources(&Reference::parse(reference).unwrap()).unwrap();
        sources
            .into_iter()
            .map(|source| format!("{}/{}", source.registry, source.repository))
            .collect()
    }

    const DIGEST: &str = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_null_device_has_no_settings() {
        let registries = Registries::load(Some(Path::new("/dev/null"))).unwrap();
        assert!(registries.rules.is_empty() && registries.search.is_empty());
    }

    #[test]
    fn mirrors_come_before_the_registry_itself() {
        let registries = registries(
            r#"
            unqualified-search-registries = ["docker.io"]
            [aliases]
            "opm" = "quay.io/operator-framework/opm"
            [[registry]]
            prefix = "quay.io/team"
            location = "mirror.example.com/quay/team"
            mirror-by-digest-only = true
            [[registry.mirror]]
            location = "localhost:5000/m"
            insecure = true
            pull-from-mirror = ""
            [[registry]]
            location = "quay.io"
            [[registry]]
            prefix = "*.bad.example.com"
            blocked = true
            "#,
        );
        assert_eq!(
            places(&registries, "quay.io/team/op:v1"),
            ["mirror.example.com/quay/team/op"]
        );
        assert_eq!(
            places(&registries, &format!("quay.io/team/op{DIGEST}")),
            ["localhost:5000/m/op", "mirror.example.com/quay/team/op"]
        );
        assert_eq!(places(&registries, "quay.io/teams/op:v1"), ["quay.io/teams/op"]);
        assert_eq!(places(&registries, "ghcr.io/a/b:v1"), ["ghcr.io/a/b"]);
        let blocked = registries.sources(&Reference::parse("x.bad.example.com/a").unwrap());
        assert!(matches!(blocked, Err(Error::Blocked { .. })));
        let full = |text: &str| {
            registries
                .complete(&Reference::parse(text).unwrap())
                .unwrap()
                .to_string()
        };
        assert_eq!(full("nginx:1"), "docker.io/library/nginx:1");
        assert_eq!(full("opm:v1"), "quay.io/operator-framework/opm:v1");
    }

    #[test]
    fn the_first_version_of_the_format_is_read() {
        let registries = registries(
            r#"
            [registries.search]
            registries = ["quay.io"]
            [registries.insecure]
            registries = ["localhost:5000"]
            [registries.block]
            registries = ["docker.io"]
            "#,
        );
        let sources = |name: &str| registries.sources(&Reference::parse(name).unwrap());
        assert!(sources("localhost:5000/a").unwrap()[0].insecure);
        assert!(!sources("quay.io/a").unwrap()[0].insecure);
        assert!(matches!(sources("docker.io/a/b"), Err(Error::Blocked { .. })));
        let full = registries.complete(&Reference::parse("a").unwrap());
        assert_eq!(full.unwrap().to_string(), "quay.io/a");
    }

    #[test]
    fn tables_that_disagree_are_rejected_or_the_first_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registries.conf");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Registries::load(Some(&path))
        };
        for text in [
            "[registries.block]\nregistries=[\"a.io\"]\n[[registry]]\nlocation=\"b.io\"",
            "[[registry]]\nlocation=\"a.io\"\nblocked=true\n[[registry]]\nlocation=\"a.io\"",
            "[[registry]]\nprefix=\"b.io\"\nlocation=\"a.io\"\ninsecure=true\n[[registry]]\nlocation=\"a.io\"",
        ] {
            assert!(matches!(load(text), Err(Error::Settings { .. })), "{text}");
        }
        let text = "[[registry]]\nlocation=\"a.io\"\nblocked=true\n[[registry]]\nprefix=\"a.io\"\nlocation=\"b.io\"";
        let sources = load(text).unwrap().sources(&Reference::parse("a.io/a").unwrap());
        assert!(matches!(sources, Err(Error::Blocked { .. })));
    }

    #[test]
    fn two_search_registries_decide_nothing() {
        let registries = registries(r#"unqualified-search-registries = ["docker.io", "quay.io"]"#);
        assert_eq!(registries.complete(&Reference::parse("nginx").unwrap()), None);
    }
}
