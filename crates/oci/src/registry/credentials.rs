//! Who we are to a registry: the credential files of podman, buildah, skopeo and Docker, and the helper programs they
//! name.
//!
//! The first file in the order of containers-auth.json(5) that lists the image wins, and in a file the most specific
//! key does: `quay.io/team/operator` before `quay.io/team` before `quay.io`. The directory in `DOCKER_CONFIG` comes before the usual
//! places, because it was set on purpose.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use olmkit::limits;
use olmkit::process::{Environment, Launcher, Run};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::Error;
use super::settings::Helpers;
use crate::json::spell;
use crate::read::limit_read;

const FILE_LIMIT: u64 = 4 << 20;
const HELPER_TIMEOUT: Duration = Duration::from_secs(60);
/// The name in the helpers of `registries.conf` that means the credential files.
const FILES: &str = "containers-auth.json";
/// The key that Docker's files use for its own registry.
const DOCKER_KEY: &str = "https://index.docker.io/v1/";

/// A credential for a registry, and its origin.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// User name. Empty with an identity token.
    pub user: String,
    /// How the user proves it.
    pub secret: Secret,
    /// Where it comes from, for messages.
    pub origin: String,
}

/// A proof of identity.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A password or an access token used as one.
    Password(String),
    /// User and password of HTTP basic authentication as base64, if they are not UTF-8.
    Basic(String),
    /// A refresh token for the registry's token server.
    IdentityToken(String),
    /// A token for the registry itself.
    RegistryToken(String),
}

impl fmt::Debug for Credential {
    /// Shows everything but the secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("user", &self.user)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// All credential files that apply, in their order.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    files: Vec<CredentialFile>,
    searched: Vec<PathBuf>,
    /// The helpers in `registries.conf`. `None` means only the files.
    helpers: Option<Helpers>,
    /// Starts the helpers.
    launcher: Launcher,
}

#[derive(Debug, Clone)]
struct CredentialFile {
    path: PathBuf,
    content: Content,
}

/// A file as docker reads it: `null` is the same as nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    auths: Option<Auths>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    creds_store: Option<String>,
}

impl Content {
    /// Reads a file. Docker ignores the case of field names.
    fn parse(mut document: Value) -> serde_json::Result<Self> {
        spell(&mut document, &["auths", "credHelpers", "credsStore"]);
        let entries = document.get_mut("auths").and_then(Value::as_object_mut);
        for (_, entry) in entries.into_iter().flatten() {
            let fields = ["auth", "username", "password", "identitytoken", "registrytoken"];
            spell(entry, &fields);
        }
        let content: Option<Self> = serde_json::from_value(document)?;
        Ok(content.unwrap_or_default())
    }
}

type Auths = BTreeMap<String, Option<Entry>>;

#[derive(Clone, Default, Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Entry { .. }")
    }
}

impl Credentials {
    /// Reads the credential files. A file named by the caller or by `REGISTRY_AUTH_FILE` is the only one read, and must
    /// exist. Otherwise files that are not there are passed over.
    pub fn load(named: Option<&Path>) -> Result<Self, Error> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        if let Some(path) = named.map(Path::to_owned).or_else(|| variable("REGISTRY_AUTH_FILE")) {
            let file = CredentialFile::read(&path)?.ok_or_else(|| Error::Settings {
                path: path.clone(),
                reason: "this credential file was asked for, but it does not exist".to_owned(),
            })?;
            return Ok(Self {
                files: vec![file],
                searched: vec![path],
                ..Self::default()
            });
        }
        Self::from_paths(usual_places(variable, rustix::process::getuid().as_raw()))
    }

    fn from_paths(searched: Vec<PathBuf>) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in &searched {
            files.extend(CredentialFile::read(path)?);
        }
        Ok(Self {
            files,
            searched,
            ..Self::default()
        })
    }

    /// The same credentials with the helpers that `registries.conf` names for all registries.
    pub(super) fn with_helpers(self, helpers: Option<Helpers>) -> Self {
        Self { helpers, ..self }
    }

    /// Where credentials were looked for, for messages.
    pub fn searched(&self) -> String {
        let paths: Vec<String> = self.searched.iter().map(|path| path.display().to_string()).collect();
        paths.join(", ")
    }

    /// The credential for a repository of a registry, if one is configured.
    pub async fn find(&self, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
        let Some(helpers) = &self.helpers else {
            return self.find_in_files(registry, repository).await;
        };
        for name in &helpers.names {
            let found = if name == FILES {
                self.find_in_files(registry, repository).await?
            } else {
                ask_helper(&self.launcher, name, registry, &helpers.file).await?
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn find_in_files(&self, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
        for file in &self.files {
            if let Some(found) = file.find(&self.launcher, registry, repository).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn usual_places(variable: impl Fn(&str) -> Option<PathBuf>, user: u32) -> Vec<PathBuf> {
    let home = variable("HOME");
    let docker_file = |folder: PathBuf| folder.join("config.json");
    let mut places: Vec<PathBuf> = variable("DOCKER_CONFIG").map(docker_file).into_iter().collect();
    places.push(match variable("XDG_RUNTIME_DIR") {
        Some(runtime) => runtime.join("containers/auth.json"),
        // podman and skopeo write it there, for example as root.
        None => format!("/run/containers/{user}/auth.json").into(),
    });
    let config = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    if let Some(config) = config {
        places.push(config.join("containers/auth.json"));
    }
    if variable("DOCKER_CONFIG").is_none() {
        places.extend(home.as_ref().map(|home| docker_file(home.join(".docker"))));
    }
    places.extend(home.map(|home| home.join(".dockercfg")));
    places
}

impl CredentialFile {
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        // A user may name a pipe, such as a shell's `<(…)`.
        let file = File::open(path).map_err(crate::Error::file("read", path))?;
        let bytes = limit_read(path, file, FILE_LIMIT)?;
        let settings = |error: serde_json::Error| Error::Settings {
            path: path.to_owned(),
            reason: format!("it is not a credential file: {error}"),
        };
        let content = if bytes.trim_ascii().is_empty() {
            Content::default()
        } else {
            let document: Value = serde_json::from_slice(&bytes).map_err(settings)?;
            // The oldest form has no outer map.
            let is_oldest = path.file_name().is_some_and(|name| name == ".dockercfg");
            let document = if is_oldest {
                json!({ "auths": document })
            } else {
                document
            };
            Content::parse(document).map_err(settings)?
        };
        Ok(Some(Self {
            path: path.to_owned(),
            content,
        }))
    }

    async fn find(&self, launcher: &Launcher, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
        let keys = keys(registry, repository);
        let helpers = self.content.cred_helpers.iter();
        let named = helpers.flat_map(|helpers| keys.iter().filter_map(|key| lookup(helpers, key)));
        let named = named.map(|helper| helper.as_deref().unwrap_or_default()).next();
        if let Some(helper) = named.filter(|helper| !helper.is_empty()) {
            return ask_helper(launcher, helper, registry, &self.path).await;
        }
        for (auths, key) in self
            .content
            .auths
            .iter()
            .flat_map(|auths| keys.iter().map(move |key| (auths, key)))
        {
            if let Some(Some(entry)) = lookup(auths, key)
                && let Some(credential) = self.decode(key, entry)?
            {
                return Ok(Some(credential));
            }
        }
        match &self.content.creds_store {
            // An empty name means that the registry has no helper, not even the general one.
            Some(helper) if !helper.is_empty() && named.is_none() => {
                ask_helper(launcher, helper, registry, &self.path).await
            }
            _ => Ok(None),
        }
    }

    fn decode(&self, key: &str, entry: &Entry) -> Result<Option<Credential>, Error> {
        let origin = format!("entry {key} of {}", self.path.display());
        let credential = |user: String, secret| Ok(Some(Credential { user, secret, origin }));
        let field = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
        if let Some(token) = field(&entry.registrytoken) {
            return credential(String::new(), Secret::RegistryToken(token));
        }
        if let Some(token) = field(&entry.identitytoken) {
            return credential(String::new(), Secret::IdentityToken(token));
        }
        let Some(text) = field(&entry.auth) else {
            let Some(user) = field(&entry.username) else {
                return Ok(None);
            };
            return credential(user, Secret::Password(entry.password.clone().unwrap_or_default()));
        };
        let text = text.trim();
        let decoded = STANDARD
            .decode(text)
            .or_else(|_| STANDARD_NO_PAD.decode(text.trim_end_matches('=')))
            .ok();
        if let Some(bytes) = decoded.as_deref().filter(|bytes| std::str::from_utf8(bytes).is_err())
            && let Some(end) = bytes.iter().position(|byte| *byte == b':')
        {
            let user = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
            return credential(user, Secret::Basic(STANDARD.encode(bytes)));
        }
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((user, password)) = decoded.as_deref().and_then(|decoded| decoded.split_once(':')) else {
            return Err(Error::Settings {
                path: self.path.clone(),
                reason: format!("\"auth\" of entry {key} is not base64 of user:password; log in to the registry again"),
            });
        };
        // Some writers of the early format left NUL bytes at the end.
        let password = password.trim_end_matches('\0');
        if user.is_empty() && password.is_empty() {
            return Ok(None);
        }
        credential(user.to_owned(), Secret::Password(password.to_owned()))
    }
}

/// Runs `docker-credential-<helper> get` with the registry's name on its input. `file` names the helper.
async fn ask_helper(
    launcher: &Launcher,
    helper: &str,
    registry: &str,
    file: &Path,
) -> Result<Option<Credential>, Error> {
    let program = format!("docker-credential-{helper}");
    let failed = |reason: String| Error::Helper {
        helper: program.clone(),
        registry: registry.to_owned(),
        path: file.to_owned(),
        reason,
    };
    if !helper
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    {
        return Err(failed(
            "its name may hold only letters, digits, '.', '_' and '-'".to_owned(),
        ));
    }
    let server = if registry == "docker.io" { DOCKER_KEY } else { registry };
    let (launcher, name, input) = (launcher.clone(), program.clone(), server.as_bytes().to_vec());
    let run = move || {
        // Helpers of clouds find their own credentials in the environment.
        let run = Run {
            input,
            output: &limits::CREDENTIAL_ANSWER,
            time: HELPER_TIMEOUT,
            ..Run::new(OsStr::new(&name), Environment::Except(&["GIT_*"])).arguments(["get"])
        };
        launcher.run(run)
    };
    let ended = tokio::task::spawn_blocking(run)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let output = ended.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => failed(format!("no answer within {} seconds", HELPER_TIMEOUT.as_secs())),
        ErrorKind::FileTooLarge => failed(format!("its answer is {error}")),
        _ => failed(format!("{error}; install it or remove it from the file")),
    })?;
    let text = String::from_utf8_lossy(&output.output);
    if !output.status.success() {
        // The protocol has no code for "I know none": helpers say it in these words.
        if text.contains("credentials not found") {
            return Ok(None);
        }
        let said = if text.trim().is_empty() {
            String::from_utf8_lossy(&output.errors)
        } else {
            text
        };
        return Err(failed(said.trim().chars().take(500).collect()));
    }
    let mut answer: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    spell(&mut answer, &["Username", "Secret"]);
    let answer: HelperAnswer = serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
    let (username, secret) = (answer.username.unwrap_or_default(), answer.secret.unwrap_or_default());
    if secret.is_empty() {
        return Ok(None);
    }
    let origin = format!("{program}, named in {}", file.display());
    let (user, secret) = match username.as_str() {
        "<token>" => (String::new(), Secret::IdentityToken(secret)),
        _ => (username, Secret::Password(secret)),
    };
    Ok(Some(Credential { user, secret, origin }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    secret: Option<String>,
}

/// The keys that may stand for a repository, most specific first.
fn keys(registry: &str, repository: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut path = repository;
    loop {
        keys.push(format!("{registry}/{path}"));
        match path.rsplit_once('/') {
            Some((shorter, _)) => path = shorter,
            None => break,
        }
    }
    keys.push(registry.to_owned());
    keys
}

/// An entry by its exact key, or by one that means the same: with a scheme, with a slash at the end, or one of the
/// several names of Docker's registry.
fn lookup<'m, T>(map: &'m BTreeMap<String, T>, key: &str) -> Option<&'m T> {
    map.get(key).or_else(|| {
        map.iter()
            .find(|(have, _)| normalize(have) == key)
            .map(|(_, value)| value)
    })
}

fn normalize(key: &str) -> String {
    let scheme = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    // Keys with a scheme are of the old form, whose path is an API version and no repository.
    let bare = scheme
        .map_or(key, |rest| rest.split('/').next().unwrap_or(rest))
        .trim_end_matches('/');
    let (host, path) = bare.split_once('/').map_or((bare, ""), |(host, path)| (host, path));
    // The versions of Docker's API are no repositories either.
    let path = if matches!(path, "v1" | "v2") { "" } else { path };
    let host = if matches!(host, "index.docker.io" | "registry-1.docker.io") {
        "docker.io"
    } else {
        host
    };
    if path.is_empty() {
        host.to_owned()
    } else {
        format!("{host}/{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn auth(user: &str) -> String {
        format!(
            r#"{{"auth":"{}"}}"#,
            STANDARD.encode(format!("{user}:secret:with:colons"))
        )
    }

    #[tokio::test]
    async fn field_names_are_read_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        for text in [
            r#"{"AUTHS":{"r.io":{"Auth":"dTpw"}}}"#,
            r#"{"auths":{"r.io":{"AUTH":null,"userName":"u","PASSWORD":"p"}}}"#,
            r#"{"auths":{"r.io":{"auth":"eDp4"}},"auths":{"r.io":{"auth":"dTpw"}}}"#,
            r#"{"Auths":{"r.io":{"auth":"dTpw"}},"CREDHELPERS":{"r.io":""},"credsstore":"none"}"#,
        ] {
            let path = file(&folder, "config.json", text);
            let found = Credentials::from_paths(vec![path])
                .unwrap()
                .find("r.io", "a")
                .await
                .unwrap();
            assert!(found.is_some_and(|found| found.user == "u"), "{text}");
        }
    }

    #[tokio::test]
    async fn the_first_file_and_the_longest_key_win() {
        let folder = tempfile::tempdir().unwrap();
        let first = format!(
            r#"{{"auths":{{"quay.io/team":{},"quay.io/team/operator":{}}}}}"#,
            auth("team"),
            auth("operator")
        );
        let second = format!(
            r#"{{"auths":{{"quay.io":{},"quay.io/team/operator":{},"https://index.docker.io/v1/":{}}}}}"#,
            auth("host"),
            auth("late"),
            auth("hub")
        );
        let paths = vec![
            file(&folder, "auth.json", &first),
            file(&folder, "config.json", &second),
            folder.path().join("none"),
        ];
        let credentials = Credentials::from_paths(paths).unwrap();
        let cases = [
            ("quay.io", "team/operator", Some("operator")),
            ("quay.io", "team/operator/sub", Some("operator")),
            ("quay.io", "team/operators", Some("team")),
            ("quay.io", "other/operator", Some("host")),
            ("docker.io", "library/nginx", Some("hub")),
            ("ghcr.io", "team/operator", None),
        ];
        for (registry, repository, user) in cases {
            let found = credentials.find(registry, repository).await.unwrap();
            assert_eq!(
                found.as_ref().map(|found| found.user.as_str()),
                user,
                "{registry}/{repository}"
            );
            if let Some(found) = found {
                assert!(found.secret == Secret::Password("secret:with:colons".to_owned()));
                assert!(!format!("{found:?}").contains("secret:with"), "{found:?}");
            }
        }
    }

    #[tokio::test]
    async fn empty_and_null_settings_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let user = auth("me");
        let cases = [
            ("null".to_owned(), None),
            (
                r#"{"auths":null,"credHelpers":null,"credsStore":null}"#.to_owned(),
                None,
            ),
            (r#"{"auths":{"r.io":null,"r.io/a":{}}}"#.to_owned(), None),
            (
                r#"{"auths":{"r.io":{"auth":null,"email":null,"username":null}}}"#.to_owned(),
                None,
            ),
            (r#"{"auths":{"r.io":{"auth":"Og=="}}}"#.to_owned(), None),
            (
                format!(r#"{{"auths":{{"r.io":{user},"other":{{"auth":"AAAA"}}}}}}"#),
                Some("me"),
            ),
            (
                format!(r#"{{"auths":{{"r.io":{user}}},"credHelpers":{{"r.io":""}},"credsStore":"nowhere"}}"#),
                Some("me"),
            ),
            (
                r#"{"credHelpers":{"r.io":null},"credsStore":"nowhere"}"#.to_owned(),
                None,
            ),
        ];
        for (text, expected) in cases {
            let path = file(&folder, "config.json", &text);
            let credentials = Credentials::load(Some(&path)).unwrap();
            let found = credentials.find("r.io", "a/b").await.unwrap();
            assert_eq!(found.map(|found| found.user).as_deref(), expected, "{text}");
        }
        let path = file(
            &folder,
            "c.json",
            r#"{"auths":{"r.io":{"registrytoken":"t","auth":"dTpw"}}}"#,
        );
        let found = Credentials::load(Some(&path)).unwrap().find("r.io", "a").await.unwrap();
        assert!(found.is_some_and(|found| found.secret == Secret::RegistryToken("t".to_owned())));
    }

    #[tokio::test]
    async fn broken_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Credentials::load(Some(&file(&folder, "auth.json", "{")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("auth.json"), "{error}");
        assert!(Credentials::load(Some(&folder.path().join("absent"))).is_err());
        let path = file(&folder, "b.json", r#"{"auths":{"r.io":{"auth":"bm9jb2xvbg=="}}}"#);
        let error = Credentials::load(Some(&path))
            .unwrap()
            .find("r.io", "a")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("entry r.io") && error.contains("log in"), "{error}");
    }

    #[tokio::test]
    async fn an_answer_of_a_helper_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, "config.json", r#"{"credsStore":"test"}"#);
        let mut credentials = Credentials::from_paths(vec![path]).unwrap();
        credentials.launcher = Launcher::new([("PATH".into(), folder.path().into())]);
        let largest = usize::try_from(limits::CREDENTIAL_ANSWER.get()).unwrap();
        assert_eq!(largest, 64 << 10);
        for (more, is_refused) in [(0, false), (1, true)] {
            let (before, after) = (r#"{"Username":"u","Secret":""#, r#""}"#);
            let secret = "x".repeat(largest + more - before.len() - after.len());
            let answer = file(&folder, "answer", &format!("{before}{secret}{after}"));
            let script = file(&folder, "script", &format!("#!/bin/sh\nexec /bin/cat {answer:?}\n"));
            // Another process writes the program: a file that we hold open cannot be executed.
            let mut install = std::process::Command::new("install");
            let install = install.args(["-m", "755"]).arg(script);
            let goal = folder.path().join("docker-credential-test");
            assert!(install.arg(goal).status().unwrap().success());
            match credentials.find("r.io", "a").await {
                Ok(found) => assert!(
                    !is_refused && found.is_some_and(|found| found.secret == Secret::Password(secret)),
                    "{more}"
                ),
                Err(error) => assert!(
                    is_refused && error.to_string().contains("its answer is"),
                    "{more}: {error}"
                ),
            }
        }
    }

    #[tokio::test]
    async fn helpers_of_registries_conf_are_asked_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(
            &folder,
            "auth.json",
            &format!(r#"{{"auths":{{"r.io":{}}}}}"#, auth("file")),
        );
        let script = file(
            &folder,
            "script",
            "#!/bin/sh\nread -r server\n[ \"$server\" = h.io ] || { echo credentials not found; exit 1; }\necho '{\"Username\":\"helper\",\"Secret\":\"s\"}'\n",
        );
        let mut install = std::process::Command::new("install");
        let install = install.args(["-m", "755"]).arg(script);
        let goal = folder.path().join("docker-credential-test");
        assert!(install.arg(goal).status().unwrap().success());
        for (names, registry, user) in [
            (&["test", FILES][..], "h.io", Some("helper")),
            (&["test", FILES], "r.io", Some("file")),
            (&[FILES, "test"], "h.io", Some("helper")),
            (&["test"], "r.io", None),
            (&[FILES], "h.io", None),
        ] {
            let helpers = Helpers {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                file: path.clone(),
            };
            let mut credentials = Credentials::from_paths(vec![path.clone()])
                .unwrap()
                .with_helpers(Some(helpers));
            credentials.launcher = Launcher::new([("PATH".into(), folder.path().into())]);
            let found = credentials.find(registry, "a").await.unwrap();
            assert_eq!(found.map(|found| found.user).as_deref(), user, "{names:?} {registry}");
        }
    }

    #[tokio::test]
    async fn keys_of_every_form_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for (key, is_found) in [
            ("r.io", true),
            ("r.io/", true),
            ("r.io/v1/", true),
            ("r.io/v2", true),
            ("https://r.io/v2/", true),
            ("r.io/team", true),
            ("r.io/v3", false),
            ("r.io/team/x", false),
        ] {
            let path = file(
                &folder,
                "config.json",
                &format!(r#"{{"auths":{{"{key}":{}}}}}"#, auth("u")),
            );
            let credentials = Credentials::from_paths(vec![path]).unwrap();
            let found = credentials.find("r.io", "team/operator").await.unwrap();
            assert_eq!(found.is_some(), is_found, "{key}");
        }
    }

    #[test]
    fn the_usual_places_follow_the_environment() {
        let places = |set: &'static [(&'static str, &'static str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| PathBuf::from(value))
            };
            usual_places(variable, 7)
        };
        let expected = [
            "/run/user/1/containers/auth.json",
            "/home/u/.config/containers/auth.json",
            "/home/u/.docker/config.json",
            "/home/u/.dockercfg",
        ];
        const USUAL: &[(&str, &str)] = &[("HOME", "/home/u"), ("XDG_RUNTIME_DIR", "/run/user/1")];
        assert_eq!(places(USUAL), expected.map(PathBuf::from));
        let expected = [
            "/d/config.json",
            "/run/containers/7/auth.json",
            "/home/u/.config/containers/auth.json",
            "/home/u/.dockercfg",
        ];
        const SET: &[(&str, &str)] = &[("HOME", "/home/u"), ("DOCKER_CONFIG", "/d")];
        assert_eq!(places(SET), expected.map(PathBuf::from));
    }
}
