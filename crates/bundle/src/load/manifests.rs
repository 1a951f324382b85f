//! The loader of the manifests directory.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::manifest::Manifest;
use super::tree::{Entry, Tree};
use super::{Object, manifest, misfit, typed, typed_noting_conversions, typed_yaml};
use olmkit_diagnostics::{Finding, Origin, Rule, Severity, define_rules};
use olmkit_go::filepath;
use olmkit_go::structs::decode::misfits;

define_rules! {
    LOAD_1 = {
        id: "LOAD-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "One file in the manifests directory must be a ClusterServiceVersion.",
        why: "OLM installs the ClusterServiceVersion. Without it the directory is not a bundle.",
        bad: "# a comment\n---\nkind: ClusterServiceVersion",
        good: "kind: ClusterServiceVersion",
        since: "0.1.0",
    }
    LOAD_2 = {
        id: "LOAD-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "A file named annotations… among the manifests must read as annotations.",
        why: "operator-sdk reads a file with this name as the bundle's annotations and fails if it contains something else.",
        bad: "manifests/annotations.yaml",
        good: "metadata/annotations.yaml",
        since: "0.1.0",
    }
    LOAD_3 = {
        id: "LOAD-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "The ClusterServiceVersion's directory must have no subdirectories.",
        why: "OLM does not look into sub-directories, so their files would never be installed.",
        bad: "manifests/\n  crds/",
        good: "manifests/",
        since: "0.1.0",
    }
    LOAD_4 = {
        id: "LOAD-4",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "The ClusterServiceVersion's directory must have no hidden files.",
        why: "Every file in the directory is read as a manifest, including hidden ones.",
        bad: "manifests/\n  .gitkeep",
        good: "manifests/",
        since: "0.1.0",
    }
    LOAD_6 = {
        id: "LOAD-6",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "A bundle must have one ClusterServiceVersion.",
        why: "OLM installs one ClusterServiceVersion for each bundle and could not choose.",
        bad: "manifests/\n  demo.v1.yaml\n  demo.v2.yaml",
        good: "manifests/\n  demo.v2.yaml",
        since: "0.1.0",
    }
    LOAD_7 = {
        id: "LOAD-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "Values in the ClusterServiceVersion and CRDs must have the right types.",
        why: "The API server and OLM decode the object with Go's types and reject values with other types.",
        bad: "replicas: \"1\"",
        good: "replicas: 1",
        since: "0.1.0",
    }
    LOAD_8 = {
        id: "LOAD-8",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "A CustomResourceDefinition must use apiextensions.k8s.io/v1 or v1beta1.",
        why: "The API server supports no other versions.",
        bad: "apiVersion: apiextensions.k8s.io/v2",
        good: "apiVersion: apiextensions.k8s.io/v1",
        since: "0.1.0",
    }
}

/// Result of loading.
#[derive(Debug, Default)]
pub(super) struct LoadedManifests {
    pub objects: Vec<Object>,
    pub name: String,
    pub problems: Vec<Finding>,
    pub fatal: Option<String>,
}

/// Fewer bytes than this are read faster by one thread.
const PARALLEL_FROM: usize = 256 << 10;

/// Reads every file of a directory and below it, keyed by path. Hidden ones are omitted.
pub(super) fn read_files(tree: &Tree, directory: &str) -> BTreeMap<String, Manifest> {
    let files: Vec<(String, &[u8])> = visible_files(tree, directory)
        .filter_map(|(path, entry)| match entry {
            Entry::File(bytes) => Some((path, bytes.as_slice())),
            _ => None,
        })
        .collect();
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    if total < PARALLEL_FROM {
        return files
            .iter()
            .map(|(path, bytes)| (path.clone(), Manifest::read(path, bytes)))
            .collect();
    }
    files
        .par_iter()
        .map(|(path, bytes)| (path.clone(), Manifest::read(path, bytes)))
        .collect()
}

/// The files that the loader reads: those whose name and directories do not start with a dot.
fn visible_files<'a>(tree: &'a Tree, directory: &str) -> impl Iterator<Item = (String, &'a Entry)> + use<'a> {
    let prefix = if directory == "." { 0 } else { directory.len() };
    let walk_files = !matches!(tree.entry(directory), Some(Entry::LinkedDirectory));
    tree.walk(directory).filter(move |(path, entry)| {
        let hidden = path
            .get(prefix..)
            .unwrap_or_default()
            .split('/')
            .any(|part| part.starts_with('.'));
        walk_files && !hidden && !matches!(entry, Entry::Directory)
    })
}

/// Loads the directory: every ClusterServiceVersion found adds its directory.
pub(super) fn load(tree: &Tree, root: &str, directory: &str, mut files: BTreeMap<String, Manifest>) -> LoadedManifests {
    let mut loaded = LoadedManifests::default();
    let mut errors: Vec<String> = Vec::new();
    let (mut found, mut complete) = (false, false);
    let mut directories = BTreeSet::new();
    for (path, _) in visible_files(tree, directory) {
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", &path));
        if name.starts_with("annotations") && !check_annotations(tree, root, &path, &mut loaded, &mut errors) {
            continue;
        }
        if files
            .get(&path)
            .is_none_or(|file| file.kind() != "ClusterServiceVersion")
        {
            continue;
        }
        found = true;
        if !directories.insert(parent.to_string()) {
            // A second one in the same directory adds the same objects and the same errors again.
            continue;
        }
        let mut part = Directory {
            tree,
            root,
            path: parent,
            problems: Vec::new(),
            errors: Vec::new(),
            objects: Vec::new(),
        };
        let stopped = part.load(&mut files);
        let has_csv = part
            .objects
            .iter()
            .any(|object| object.kind() == "ClusterServiceVersion")
            && stopped.is_none();
        let text = stopped.or_else(|| aggregate(&part.errors));
        if let Some(text) = text {
            errors.push(format!("error loading objs in directory: {text}"));
        }
        loaded.problems.extend(part.problems);
        if has_csv {
            complete = true;
        } else {
            errors.push("no bundle csv found".to_string());
        }
        if !part.objects.is_empty() {
            loaded.objects = part.objects;
        }
    }
    let shown = filepath::join(root, directory);
    if !found {
        errors.push(format!("unable to find a csv in bundle directory {shown}"));
        loaded.problems.extend(missing_csv(&files, &shown, directory));
    } else if !complete {
        errors.push(format!("unable to load bundle from directory {shown}"));
    }
    if loaded.objects.is_empty() {
        loaded.objects = files.into_values().filter_map(|file| file.object.ok()).collect();
    }
    let csv = loaded
        .objects
        .iter()
        .find(|object| object.kind() == "ClusterServiceVersion");
    loaded.name = csv.map(|csv| csv.name().to_string()).unwrap_or_default();
    loaded.fatal = aggregate(&errors);
    loaded
}

/// A file that is named like an annotations file must read as one.
fn check_annotations(
    tree: &Tree,
    root: &str,
    path: &str,
    loaded: &mut LoadedManifests,
    errors: &mut Vec<String>,
) -> bool {
    let Some(bytes) = tree.file(path) else { return true };
    match typed_yaml(bytes, "AnnotationsFile") {
        Ok(_) => true,
        Err(mut problem) => {
            let shown = filepath::join(root, path);
            problem.rule = LOAD_2.id;
            problem.message = format!("unable to load the annotations file {shown}: {}", problem.message);
            errors.push(problem.message.clone());
            let hint = "annotations.yaml belongs in metadata/, not among the manifests";
            loaded.problems.push(problem.file(path).hint(hint));
            false
        }
    }
}

/// Why no ClusterServiceVersion was found: unreadable files are the likely reason, so they are named.
fn missing_csv(files: &BTreeMap<String, Manifest>, shown: &str, directory: &str) -> Vec<Finding> {
    let as_missing = |problem: &Finding| {
        let mut problem = problem.clone();
        problem.rule = LOAD_1.id;
        problem
    };
    let mut problems: Vec<Finding> = files
        .values()
        .filter_map(|file| Some(as_missing(file.object.as_ref().err()?)))
        .collect();
    let kindless = files
        .values()
        .filter_map(|file| file.object.as_ref().ok())
        .filter(|object| object.value.is_null());
    for object in kindless {
        problems.push(
            Finding::from_rule(&LOAD_1, "the first YAML document of this file is empty")
                .file(&object.path)
                .at(object.node.start)
                .hint(
                    "only the first document of a file is read: remove the comment or separator before the first `---`",
                ),
        );
    }
    if problems.is_empty() {
        problems.push(
            Finding::from_rule(&LOAD_1, format!("unable to find a csv in bundle directory {shown}"))
                .file(directory)
                .hint("one file must hold an object with `kind: ClusterServiceVersion`"),
        );
    }
    problems
}

/// Several errors as Kubernetes prints them: without repeats, in brackets unless it is only one.
fn aggregate(errors: &[String]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let different: Vec<&str> = errors
        .iter()
        .filter(|error| seen.insert(*error))
        .map(String::as_str)
        .collect();
    match different.as_slice() {
        [] => None,
        [single] => Some((*single).to_string()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// The directory of a ClusterServiceVersion.
struct Directory<'a> {
    tree: &'a Tree,
    root: &'a str,
    path: &'a str,
    problems: Vec<Finding>,
    errors: Vec<String>,
    objects: Vec<Object>,
}

impl Directory<'_> {
    /// Loads all files. Some errors stop the loading and are returned. The others are collected.
    fn load(&mut self, files: &mut BTreeMap<String, Manifest>) -> Option<String> {
        let mut stopped: Option<String> = None;
        let mut csvs = 0;
        for (name, entry) in self.tree.children(self.path) {
            let path = filepath::join(self.path, name);
            let shown = filepath::join(self.root, &path);
            if matches!(entry, Entry::Directory) {
                self.note(
                    &LOAD_3,
                    &path,
                    format!("bundle manifests dir contains directory: {shown}"),
                    SUB_DIRECTORY_HINT,
                    stopped.is_some(),
                );
                continue;
            }
            if name.starts_with('.') {
                self.note(
                    &LOAD_4,
                    &path,
                    format!("bundle manifests dir has hidden file: {shown}"),
                    HIDDEN_HINT,
                    stopped.is_some(),
                );
                continue;
            }
            let mut object = match files.remove(&path).map(|file| file.object) {
                Some(Ok(object)) => object,
                Some(Err(mut problem)) => {
                    let message = format!("unable to decode object: {}", problem.message);
                    if stopped.is_none() {
                        self.errors.push(message.clone());
                    }
                    problem.message = message;
                    self.problems.push(*problem);
                    continue;
                }
                None => continue,
            };
            if let Err(problem) = self.decode(&mut object, name, &mut csvs) {
                if stopped.is_none() {
                    stopped = Some(problem.message.clone());
                }
                let others = other_misfits(&object, &problem);
                self.problems.push(problem.file(&path));
                self.problems.extend(others.into_iter().map(|other| other.file(&path)));
            }
            self.objects.push(object);
        }
        stopped
    }

    fn note(&mut self, rule: &'static Rule, path: &str, message: String, hint: &str, stopped: bool) {
        if !stopped {
            self.errors.push(message.clone());
        }
        self.problems
            .push(Finding::from_rule(rule, message).file(path).hint(hint));
    }

    fn decode(&self, object: &mut Object, name: &str, csvs: &mut usize) -> Result<(), Box<Finding>> {
        match (object.kind(), object.api_version()) {
            ("ClusterServiceVersion", _) => {
                *csvs += 1;
                if *csvs > 1 {
                    let hint = "a bundle contains one version of one operator; move the other ClusterServiceVersion to a separate bundle";
                    let problem = Finding::from_rule(&LOAD_6, "invalid bundle: contains multiple CSVs");
                    return Err(Box::new(problem.hint(hint)));
                }
            }
            ("CustomResourceDefinition", version) if type_of(object).is_none() => {
                let problem = Finding::from_rule(&LOAD_8, format!("unsupported CRD version {version} for {name}"))
                    .at(object.position("/apiVersion"))
                    .hint("use `apiVersion: apiextensions.k8s.io/v1`");
                return Err(Box::new(problem));
            }
            _ => {}
        }
        let Some((word, key)) = type_of(object) else {
            return Ok(());
        };
        let decoded =
            match object.typed_document.take() {
                None => typed_noting_conversions(&object.node, &object.value, key)
                    .map(|(value, converted)| (value, !converted)),
                Some(text) => manifest::parse(&text)
                    .and_then(|(document, value)| Ok((typed(&document.root, &value, key)?, false))),
            };
        match decoded {
            Ok((value, is_exact)) => {
                object.typed = Some(value);
                object.is_exact = is_exact;
                Ok(())
            }
            Err(problem) => Err(Box::new(named(*problem, word, name))),
        }
    }
}

/// operator-sdk's name for an object that it decodes into a Go type, and the key of that type.
fn type_of(object: &Object) -> Option<(&'static str, &'static str)> {
    match (object.kind(), object.api_version()) {
        ("ClusterServiceVersion", _) => Some(("CSV", "ClusterServiceVersion")),
        ("CustomResourceDefinition", "apiextensions.k8s.io/v1") => Some(("CRD", "v1.CustomResourceDefinition")),
        ("CustomResourceDefinition", "apiextensions.k8s.io/v1beta1") => {
            Some(("CRD", "v1beta1.CustomResourceDefinition"))
        }
        _ => None,
    }
}

/// A value that does not fit, with operator-sdk's message and a hint.
fn named(mut problem: Finding, word: &str, name: &str) -> Finding {
    problem.rule = LOAD_7.id;
    problem.message = format!("unable to parse {word} {name}: {}", problem.message);
    let hint = type_hint(&problem);
    problem.hint(hint)
}

/// The other values of an object that do not fit. operator-sdk names one.
fn other_misfits(object: &Object, first: &Finding) -> Vec<Finding> {
    let Some((word, key)) = type_of(object).filter(|_| first.rule == LOAD_7.id) else {
        return Vec::new();
    };
    let name = object.path.rsplit('/').next().unwrap_or_default();
    let all = misfits(&object.value, key, true);
    let findings = all.iter().map(|error| named(misfit(&object.node, error), word, name));
    findings.filter(|other| other.path != first.path).collect()
}

/// The fix for a value that does not fit its field: Go's message in terms of YAML.
fn type_hint(problem: &Finding) -> String {
    const KINDS: [(&str, &str); 10] = [
        ("string", "a string"),
        ("bool", "a boolean"),
        ("int32", "a whole number"),
        ("int64", "a whole number"),
        ("float64", "a number"),
        ("number", "a number"),
        ("array", "a list"),
        ("object", "a map"),
        ("[]", "a list"),
        ("map[", "a map"),
    ];
    let of = |name: &str| {
        let known = KINDS.iter().find(|(go, _)| name.starts_with(go));
        known.map_or("a map", |(_, words)| *words)
    };
    let misfit = problem
        .message
        .split_once("cannot unmarshal ")
        .and_then(|(_, rest)| Some((rest.split(' ').next()?, rest.rsplit_once(" of type ")?.1)));
    match (misfit, problem.path.as_deref()) {
        (Some((found, wanted)), _) => format!("{FIELD_MUST_BE} {}, got {}", of(wanted), of(found)),
        (None, Some("spec.version")) => "write a version of three numbers, such as `1.2.3` or `1.2.3-rc.1`".to_string(),
        (None, _) => "write a value that the field takes".to_string(),
    }
}

/// The start of the hint that names the type of a field and of its value.
pub const FIELD_MUST_BE: &str = "the field must be";

const SUB_DIRECTORY_HINT: &str = "OLM reads the files of this directory only: move the files up, or out of the bundle";
const HIDDEN_HINT: &str = "remove the file, or keep it out of the bundle with .gitignore or .dockerignore";
