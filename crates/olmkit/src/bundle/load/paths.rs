//! Paths as Go's `path/filepath` cleans and joins them, because they show in texts and decide what is read.

use std::path::Path;

/// `filepath.Clean`: no empty parts, no `.`, `..` resolved where it can be. The empty path is `.`.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut out: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if out.last().is_some_and(|last| *last != "..") => {
                out.pop();
            }
            ".." if rooted => {}
            part => out.push(part),
        }
    }
    match (rooted, out.is_empty()) {
        (true, _) => format!("/{}", out.join("/")),
        (false, true) => ".".to_string(),
        (false, false) => out.join("/"),
    }
}

/// `filepath.Join` of two elements.
pub fn join(base: &str, name: &str) -> String {
    match (base.is_empty(), name.is_empty()) {
        (true, true) => String::new(),
        (true, false) => clean(name),
        (false, true) => clean(base),
        (false, false) => clean(&format!("{base}/{name}")),
    }
}

/// A path relative to the working directory, as operator-sdk shows a bundle directory whichever way it was given.
pub fn relative_to_working_directory(path: &Path) -> String {
    let Ok(here) = std::env::current_dir() else {
        return clean(&path.to_string_lossy());
    };
    let target = clean(&here.join(path).to_string_lossy());
    let here = clean(&here.to_string_lossy());
    let split = |path: &str| {
        path.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    let (from, to) = (split(&here), split(&target));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_string(), from.len() - shared);
    let parts: Vec<String> = up.chain(to.into_iter().skip(shared)).collect();
    if parts.is_empty() {
        ".".to_string()
    } else {
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        for (path, cleaned) in [
            ("", "."),
            ("a//b/./c/..", "a/b"),
            ("../a", "../a"),
            ("/../a", "/a"),
            ("a/../..", ".."),
            ("./", "."),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
        assert_eq!(join(".", "manifests"), "manifests");
        assert_eq!(join("x/y", "/abs"), "x/y/abs");
    }
}
