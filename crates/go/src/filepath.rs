//! Paths as Go's `path/filepath` handles them on Unix.

/// `filepath.Clean`: no empty parts, no `.`, `..` resolved where it can be. The empty path is `.`.
#[must_use]
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
        (false, true) => ".".to_owned(),
        (false, false) => out.join("/"),
    }
}

/// `filepath.Join` of two elements.
#[must_use]
pub fn join(base: &str, name: &str) -> String {
    match (base.is_empty(), name.is_empty()) {
        (true, true) => String::new(),
        (true, false) => clean(name),
        (false, true) => clean(base),
        (false, false) => clean(&format!("{base}/{name}")),
    }
}

/// `filepath.Rel` of two absolute paths.
#[must_use]
pub fn rel(base: &str, target: &str) -> String {
    let (base, target) = (clean(base), clean(target));
    let parts = |path: &'_ str| -> Vec<String> {
        path.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (from, to) = (parts(&base), parts(&target));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - shared);
    let relative: Vec<String> = up.chain(to.into_iter().skip(shared)).collect();
    if relative.is_empty() {
        ".".to_owned()
    } else {
        relative.join("/")
    }
}
