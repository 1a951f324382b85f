//! The loader of the manifests directory.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::manifest::Manifest;
use super::tree::{Entry, Tree};
use super::{Object, Problem, manifest, paths, typed, typed_yaml};

/// What loading gave.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub objects: Vec<Object>,
    pub name: String,
    pub problems: Vec<Problem>,
    pub fatal: Option<String>,
}

/// Fewer bytes than this are read faster by one thread.
const PARALLEL_FROM: usize = 256 << 10;

/// Reads every file of a directory and below it, keyed by path. Hidden ones are left out.
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

/// The files that the loader looks at: none whose own name or a directory of theirs starts with a dot.
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

/// Loads the directory: every ClusterServiceVersion found brings the directory it lies in.
pub(super) fn load(tree: &Tree, root: &str, directory: &str, mut files: BTreeMap<String, Manifest>) -> Loaded {
    let mut loaded = Loaded::default();
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
            // A second one in the same directory brings the same objects and the same errors again.
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
    let shown = paths::join(root, directory);
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
fn check_annotations(tree: &Tree, root: &str, path: &str, loaded: &mut Loaded, errors: &mut Vec<String>) -> bool {
    let Some(bytes) = tree.file(path) else { return true };
    match typed_yaml(bytes, "AnnotationsFile") {
        Ok(_) => true,
        Err(mut problem) => {
            let shown = paths::join(root, path);
            problem.rule = "LOAD-2";
            problem.message = format!("unable to load the annotations file {shown}: {}", problem.message);
            errors.push(problem.message.clone());
            loaded.problems.push(
                *problem
                    .at_file(path)
                    .hint("annotations.yaml belongs in metadata/, not among the manifests"),
            );
            false
        }
    }
}

/// Why no ClusterServiceVersion was found: files that could not be read are the likely reason, so they are named.
fn missing_csv(files: &BTreeMap<String, Manifest>, shown: &str, directory: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = files
        .values()
        .filter_map(|file| {
            file.object.as_ref().err().map(|problem| Problem {
                rule: "LOAD-1",
                ..(**problem).clone()
            })
        })
        .collect();
    let kindless = files
        .values()
        .filter_map(|file| file.object.as_ref().ok())
        .filter(|object| object.value.is_null());
    for object in kindless {
        let mut problem = *Problem::new("LOAD-1", "the first YAML document of this file is empty")
            .at_file(&object.path)
            .hint("only the first document of a file is read: remove the comment or separator before the first `---`");
        problem.position = Some(object.node.start);
        problems.push(problem);
    }
    if problems.is_empty() {
        problems.push(
            *Problem::new("LOAD-1", format!("unable to find a csv in bundle directory {shown}"))
                .at_file(directory)
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

/// The directory that a ClusterServiceVersion lies in.
struct Directory<'a> {
    tree: &'a Tree,
    root: &'a str,
    path: &'a str,
    problems: Vec<Problem>,
    errors: Vec<String>,
    objects: Vec<Object>,
}

impl Directory<'_> {
    /// Loads all files. Some errors stop the loading: their text is returned. The others are collected.
    fn load(&mut self, files: &mut BTreeMap<String, Manifest>) -> Option<String> {
        let mut stopped: Option<String> = None;
        let mut csvs = 0;
        for (name, entry) in self.tree.children(self.path) {
            let path = paths::join(self.path, name);
            let shown = paths::join(self.root, &path);
            if matches!(entry, Entry::Directory) {
                self.note(
                    "LOAD-3",
                    &path,
                    format!("bundle manifests dir contains directory: {shown}"),
                    SUB_DIRECTORY_HINT,
                    stopped.is_some(),
                );
                continue;
            }
            if name.starts_with('.') {
                self.note(
                    "LOAD-4",
                    &path,
                    format!("bundle manifests dir has hidden file: {shown}"),
                    HIDDEN_HINT,
                    stopped.is_some(),
                );
                continue;
            }
            let mut object = match files.remove(&path).map(|file| file.object) {
                Some(Ok(object)) => object,
                Some(Err(problem)) => {
                    let message = format!("unable to decode object: {}", problem.message);
                    if stopped.is_none() {
                        self.errors.push(message.clone());
                    }
                    self.problems.push(Problem { message, ..*problem });
                    continue;
                }
                None => continue,
            };
            if let Err(problem) = self.decode(&mut object, name, &mut csvs) {
                if stopped.is_none() {
                    stopped = Some(problem.message.clone());
                }
                self.problems.push(*problem.at_file(&path));
            }
            self.objects.push(object);
        }
        stopped
    }

    fn note(&mut self, rule: &'static str, path: &str, message: String, hint: &str, stopped: bool) {
        if !stopped {
            self.errors.push(message.clone());
        }
        self.problems
            .push(*Problem::new(rule, message).at_file(path).hint(hint));
    }

    fn decode(&self, object: &mut Object, name: &str, csvs: &mut usize) -> Result<(), Box<Problem>> {
        let (word, key) = match (object.kind(), object.api_version()) {
            ("ClusterServiceVersion", _) => {
                *csvs += 1;
                if *csvs > 1 {
                    return Err(Problem::new("LOAD-6", "invalid bundle: contains multiple CSVs")
                        .hint("a bundle holds one version of one operator; put the other ClusterServiceVersion into a bundle of its own"));
                }
                ("CSV", "ClusterServiceVersion")
            }
            ("CustomResourceDefinition", "apiextensions.k8s.io/v1") => ("CRD", "v1.CustomResourceDefinition"),
            ("CustomResourceDefinition", "apiextensions.k8s.io/v1beta1") => ("CRD", "v1beta1.CustomResourceDefinition"),
            ("CustomResourceDefinition", version) => {
                let mut problem = Problem::new("LOAD-8", format!("unsupported CRD version {version} for {name}"))
                    .hint("use `apiVersion: apiextensions.k8s.io/v1`");
                problem.position = Some(object.position("/apiVersion"));
                return Err(problem);
            }
            _ => return Ok(()),
        };
        let decoded = match object.typed_document.take() {
            None => typed(&object.node, &object.value, key),
            Some(text) => manifest::parse(&text).and_then(|(document, value)| typed(&document.root, &value, key)),
        };
        match decoded {
            Ok(value) => {
                object.typed = Some(value);
                Ok(())
            }
            Err(mut problem) => {
                problem.rule = "LOAD-7";
                problem.message = format!("unable to parse {word} {name}: {}", problem.message);
                let hint = type_hint(&problem);
                Err(problem.hint(hint))
            }
        }
    }
}

/// How to put right a value that does not fit its field: Go's words, in those of YAML.
fn type_hint(problem: &Problem) -> String {
    const KINDS: [(&str, &str); 10] = [
        ("string", "a text"),
        ("bool", "`true` or `false`"),
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
    match (misfit, problem.pointer.as_deref()) {
        (Some((found, wanted)), _) => format!("{FIELD_TAKES} {}, here is {}", of(wanted), of(found)),
        (None, Some("/spec/version")) => {
            "write a version of three numbers, such as `1.2.3` or `1.2.3-rc.1`".to_string()
        }
        (None, _) => "write a value that the field takes".to_string(),
    }
}

/// How the hint begins that tells what a field takes and what is there.
pub(crate) const FIELD_TAKES: &str = "the field takes";

const SUB_DIRECTORY_HINT: &str = "OLM reads the files of this directory only: move the files up, or out of the bundle";
const HIDDEN_HINT: &str = "remove the file, or keep it out of the bundle with .gitignore or .dockerignore";
