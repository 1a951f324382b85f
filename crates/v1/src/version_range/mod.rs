//! Version ranges of ClusterExtensions, by the rules of Masterminds/semver v3.5, which OLM v1 uses where OLM v0 and catalogs use
//! blang/semver.

use std::cmp::Ordering;
use std::sync::LazyLock;

use olmkit_go::strconv::quote;
use regex::{Captures, Regex};

use olmkit_base::object::{PreRelease, Version};

/// Maximum bytes of a range.
const LONGEST: usize = 512;
/// Maximum alternatives of a range.
const MOST_ALTERNATIVES: usize = 32;
/// Maximum bytes of one version of a range.
const LONGEST_VERSION: usize = 256;
/// Characters that the API server admits in `spec.source.catalog.version`.
const LONGEST_FIELD: usize = 64;

/// A set of versions: `>=1.2, <2`, `~1.4`, `^1`, `1.x || 3.0.0`.
///
/// Unlike in [`object::VersionRange`](olmkit_base::object::VersionRange), a comparison without a pre-release matches no
/// pre-release.
///
/// ```
/// use olmkit_base::object::Version;
/// use olmkit_v1::VersionRange;
///
/// let range = VersionRange::parse(">=1.2 <2 || ~3.1")?;
/// assert!(range.contains(&Version::parse("3.1.4").unwrap()));
/// assert!(!range.contains(&Version::parse("1.3.0-rc1").unwrap()));
/// # Ok::<(), olmkit_v1::VersionRangeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct VersionRange {
    text: String,
    alternatives: Vec<Vec<Comparison>>,
}

/// Why a string is not a range, with Masterminds' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionRangeError {
    /// The range has too many bytes.
    #[error("constraint string is too long (max {LONGEST} bytes)")]
    TooLong,
    /// The range has too many alternatives.
    #[error("too many constraint groups (max {MOST_ALTERNATIVES})")]
    TooManyAlternatives,
    /// An alternative is not a list of comparisons.
    #[error("improper constraint: {}", quote(.0))]
    Improper(String),
    /// The version of a comparison is not one.
    #[error("constraint parser error")]
    Version,
}

#[derive(Debug, Clone)]
struct Comparison {
    operator: Operator,
    version: Parts,
    /// The omitted parts: `1`, `1.x` and `1.2` mean several versions.
    open: Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    All,
}

/// A version in Masterminds' form: the pre-release is a string.
#[derive(Debug, Clone)]
struct Parts {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
}

const VERSION: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
/// Go's `\s`.
const BLANK: &str = r"[\t\n\x0C\r ]";

/// `None` only for a slip in the constants above and below, which the tests would find.
fn pattern(form: &str) -> Option<Regex> {
    let form = form
        .replace("OPS", OPERATORS)
        .replace("VERSION", VERSION)
        .replace(r"\s", BLANK);
    Regex::new(&form).ok()
}

static ONE: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^\s*(OPS)\s*(VERSION)\s*$"));
static EACH: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(OPS)\s*(VERSION)"));
static ALL: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"^(\s*(OPS)\s*(VERSION)\s*)((?:\s+|,\s*)(OPS)\s*(VERSION)\s*)*$"));
static FROM_TO: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"\s*(VERSION)\s+-\s+(VERSION)\s*"));
static LOOSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?$",
    )
});
/// The rule of the ClusterExtension's definition, with its slips (`*]`).
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(concat!(
        r"^(\s*(OPS)\s*(v?(0|[1-9][0-9]*|[x|X|\*])(\.(0|[1-9][0-9]*|x|X|\*\]))?(\.(0|[1-9][0-9]*|x|X|\*))?",
        r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?)\s*)",
        r"((?:\s+|,\s*|\s*\|\|\s*)(OPS)\s*(v?(0|[1-9][0-9]*|x|X|\*\])(\.(0|[1-9][0-9]*|x|X|\*))?",
        r"(\.(0|[1-9][0-9]*|x|X|\*\]))?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?)\s*)*$"
    ))
});

impl VersionRange {
    /// Reads a range.
    ///
    /// # Errors
    /// [`VersionRangeError`] with Masterminds' message.
    pub fn parse(text: &str) -> Result<Self, VersionRangeError> {
        if text.len() > LONGEST {
            return Err(VersionRangeError::TooLong);
        }
        let rewritten = rewrite(text);
        let alternatives: Vec<&str> = rewritten.split("||").collect();
        if alternatives.len() > MOST_ALTERNATIVES {
            return Err(VersionRangeError::TooManyAlternatives);
        }
        let read = |part: &&str| {
            if !is_match(&ALL, part) {
                return Err(VersionRangeError::Improper((*part).to_owned()));
            }
            let each = EACH.iter().flat_map(|pattern| pattern.find_iter(part));
            each.map(|one| Comparison::parse(one.as_str())).collect()
        };
        Ok(Self {
            text: text.to_owned(),
            alternatives: alternatives.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// The range as given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the range contains a version. Build metadata does not count.
    #[must_use]
    pub fn contains(&self, version: &Version) -> bool {
        let version = Parts::new(version);
        self.alternatives.iter().any(|all| {
            let pre_releases = names_pre_release(all);
            all.iter().all(|one| one.holds(&version, pre_releases))
        })
    }

    /// Returns true if an alternative names a pre-release. One that does not contains no pre-release.
    #[must_use]
    pub fn names_pre_release(&self) -> bool {
        self.alternatives.iter().any(|all| names_pre_release(all))
    }

    /// Returns true if the API server accepts the range in a ClusterExtension. Its pattern is narrower: it does not
    /// allow `1.0 - 2.0`, for instance.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.text.chars().count() <= LONGEST_FIELD && is_match(&FIELD, &self.text)
    }
}

fn names_pre_release(all: &[Comparison]) -> bool {
    all.iter().any(|one| !one.version.pre.is_empty())
}

/// `1.0 - 2.0` becomes `>= 1.0, <= 2.0`.
fn rewrite(text: &str) -> String {
    let mut rewritten = text.to_owned();
    for found in FROM_TO.iter().flat_map(|pattern| pattern.captures_iter(text)) {
        let part = |at: usize| group(&found, at);
        // As in Go, the first occurrence of that text changes.
        rewritten = rewritten.replacen(part(0), &format!(">= {}, <= {} ", part(1), part(11)), 1);
    }
    rewritten
}

fn is_match(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn captures<'t>(pattern: &Option<Regex>, text: &'t str) -> Option<Captures<'t>> {
    pattern.as_ref()?.captures(text)
}

fn group<'t>(found: &Captures<'t>, at: usize) -> &'t str {
    found.get(at).map_or("", |part| part.as_str())
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, VersionRangeError> {
        let found = captures(&ONE, text).ok_or_else(|| VersionRangeError::Improper(text.to_owned()))?;
        let part = |at: usize| group(&found, at);
        let is_open = |part: &str| matches!(part.strip_prefix('.').unwrap_or(part), "" | "x" | "X" | "*");
        let (major, minor, patch, pre) = (part(3), part(4), part(5), part(6));
        let (open, version) = if is_open(major) {
            (Open::All, format!("0.0.0{pre}"))
        } else if is_open(minor) {
            (Open::Minor, format!("{major}.0.0{pre}"))
        } else if is_open(patch) {
            (Open::Patch, format!("{major}{minor}.0{pre}"))
        } else {
            (Open::Nothing, part(2).to_owned())
        };
        let operator = match part(1) {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterOrEqual,
            "<=" | "=<" => Operator::LessOrEqual,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        Ok(Self {
            operator,
            version: Parts::parse(&version).ok_or(VersionRangeError::Version)?,
            open,
        })
    }

    fn holds(&self, version: &Parts, pre_releases: bool) -> bool {
        if !version.pre.is_empty() && !pre_releases {
            return false;
        }
        let order = version.cmp(&self.version);
        let (same_major, same_minor) = (version.major == self.version.major, version.minor == self.version.minor);
        match (self.operator, self.open) {
            (Operator::Equal, Open::Nothing) => order == Ordering::Equal,
            (Operator::Equal | Operator::Tilde, _) => order != Ordering::Less && self.tilde(same_major, same_minor),
            (Operator::NotEqual, Open::Minor) => !same_major,
            (Operator::NotEqual, Open::Patch) => {
                let pre = !version.pre.is_empty() || !self.version.pre.is_empty();
                !same_major || !same_minor || pre && compare_pre(&version.pre, &self.version.pre) != Ordering::Equal
            }
            (Operator::NotEqual, _) => order != Ordering::Equal,
            (Operator::Greater, Open::Minor) => version.major > self.version.major,
            (Operator::Greater, Open::Patch) => {
                version.major > self.version.major || same_major && version.minor > self.version.minor
            }
            (Operator::Greater, _) => order == Ordering::Greater,
            (Operator::Less, _) => order == Ordering::Less,
            (Operator::GreaterOrEqual, _) => order != Ordering::Less,
            (Operator::LessOrEqual, Open::Nothing) => order != Ordering::Greater,
            (Operator::LessOrEqual, Open::Minor) => version.major <= self.version.major,
            (Operator::LessOrEqual, _) => {
                version.major < self.version.major || same_major && version.minor <= self.version.minor
            }
            (Operator::Caret, _) => order != Ordering::Less && self.caret(version, same_major, same_minor),
        }
    }

    fn tilde(&self, same_major: bool, same_minor: bool) -> bool {
        let Parts {
            major, minor, patch, ..
        } = self.version;
        let any = (major, minor, patch) == (0, 0, 0) && matches!(self.open, Open::Nothing | Open::All);
        any || same_major && (same_minor || self.open == Open::Minor)
    }

    fn caret(&self, version: &Parts, same_major: bool, same_minor: bool) -> bool {
        if self.version.major > 0 || self.open == Open::Minor {
            return same_major;
        }
        if version.major > 0 {
            return false;
        }
        if self.version.minor > 0 || self.open == Open::Patch {
            return same_minor;
        }
        version.minor == 0 && version.patch == self.version.patch
    }
}

impl Parts {
    fn new(version: &Version) -> Self {
        let pre: Vec<String> = version.pre_release.iter().map(PreRelease::to_string).collect();
        Self {
            major: version.major,
            minor: version.minor,
            patch: version.patch,
            pre: pre.join("."),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let found = captures(&LOOSE, text).filter(|_| text.len() <= LONGEST_VERSION)?;
        let number = |at: usize| match group(&found, at).trim_start_matches('.') {
            "" => Some(0),
            digits => digits.parse().ok(),
        };
        let pre = group(&found, 5);
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if pre
            .split('.')
            .any(|part| part.len() > 1 && part.starts_with('0') && is_number(part))
        {
            return None;
        }
        Some(Self {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            pre: pre.to_owned(),
        })
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |parts: &Self| (parts.major, parts.minor, parts.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_pre(&self.pre, &other.pre),
            })
    }
}

fn compare_pre(one: &str, other: &str) -> Ordering {
    let (mut ours, mut theirs) = (one.split('.'), other.split('.'));
    loop {
        let (one, other) = match (ours.next(), theirs.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => (one.unwrap_or_default(), other.unwrap_or_default()),
        };
        let order = compare_identifiers(one, other);
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_identifiers(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    match (one.is_empty(), other.is_empty()) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) if one > other => Ordering::Greater,
            (Some(_), _) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => one.cmp(other),
        },
    }
}

#[cfg(test)]
mod tests;
