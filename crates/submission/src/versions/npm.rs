//! npm ranges, as the Python library `semantic_version` parses them. The pipeline treats `olm.skipRange` as such a
//! range, OLM does not.

use std::cmp::Ordering;

use super::Semantic;

/// Why the library rejects a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NpmError {
    /// It raises a `ValueError`.
    Refused,
    /// The library crashes.
    Crash,
}

/// A range: one of its alternatives must match with all parts.
#[derive(Debug, Clone)]
pub(crate) struct NpmRange {
    alternatives: Vec<Vec<Clause>>,
}

#[derive(Debug, Clone)]
struct Clause {
    operator: Operator,
    target: Semantic,
    /// True if pre-releases match only if a target has the same patch version.
    same_patch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl NpmRange {
    /// Reads a range.
    pub(crate) fn parse(text: &str) -> Result<Self, NpmError> {
        let mut alternatives = Vec::new();
        for group in text.split("||") {
            let group = group.trim();
            let group = if group.is_empty() { ">=0.0.0" } else { group };
            let mut clauses = Vec::new();
            if group.contains(" - ") {
                let ends: Vec<&str> = group.splitn(3, " - ").collect();
                let [low, high] = ends.as_slice() else {
                    return Err(NpmError::Refused);
                };
                clauses.extend(simple(&format!(">={low}"), NpmError::Crash)?);
                clauses.extend(simple(&format!("<={high}"), NpmError::Crash)?);
            } else {
                for block in group.split(' ') {
                    clauses.extend(simple(block, NpmError::Refused)?);
                }
            }
            alternatives.extend(with_pre_releases(clauses));
        }
        Ok(Self { alternatives })
    }

    /// Returns true if the range contains a version.
    pub(crate) fn contains(&self, version: &Semantic) -> bool {
        self.alternatives
            .iter()
            .any(|clauses| clauses.iter().all(|clause| clause.matches(version)))
    }
}

impl Clause {
    fn new(operator: Operator, target: Semantic) -> Self {
        Self {
            operator,
            target,
            same_patch: true,
        }
    }

    fn matches(&self, version: &Semantic) -> bool {
        let strict = !self.target.build.is_empty();
        let version = if strict {
            version.clone()
        } else {
            version.without_build()
        };
        if !version.pre_release.is_empty() && self.same_patch && self.target.truncated() != version.truncated() {
            return false;
        }
        let order = version.order(&self.target);
        match self.operator {
            Operator::Equal => version == self.target,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
        }
    }
}

/// Pre-releases match only next to a bound that is one: such a range has a second alternative for them.
fn with_pre_releases(clauses: Vec<Clause>) -> Vec<Vec<Clause>> {
    let (mut pre, mut releases) = (Vec::new(), Vec::new());
    for clause in clauses {
        if clause.target.pre_release.is_empty() {
            releases.push(clause);
            continue;
        }
        let Semantic {
            major, minor, patch, ..
        } = clause.target;
        let bound = match clause.operator {
            Operator::Greater | Operator::GreaterOrEqual => Some((Operator::Less, patch.saturating_add(1))),
            Operator::Less | Operator::LessOrEqual => Some((Operator::GreaterOrEqual, 0)),
            Operator::Equal => None,
        };
        if let Some((operator, patch)) = bound {
            pre.push(Clause {
                operator,
                target: Semantic::new(major, minor, patch),
                same_patch: false,
            });
        }
        releases.push(Clause::new(clause.operator, clause.target.truncated()));
        pre.push(clause);
    }
    let mut alternatives = Vec::new();
    if !pre.is_empty() {
        alternatives.push(pre);
    }
    alternatives.push(releases);
    alternatives
}

/// One part: an operator and a version, some of whose numbers may be missing or `x`.
struct Block<'a> {
    prefix: &'a str,
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
    pre_release: Option<&'a str>,
    build: Option<&'a str>,
}

/// `v?(<|<=|>=|>|=|^|~|)major(.minor(.patch)?)?(-pre)?(+build)?`
fn block(text: &str) -> Option<Block<'_>> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_prefix('v').unwrap_or(text);
    let prefix = ["<=", ">=", "<", ">", "=", "^", "~"]
        .into_iter()
        .find(|prefix| text.starts_with(prefix))
        .unwrap_or_default();
    let rest = text.get(prefix.len()..)?;
    let end = rest.find(['-', '+']).unwrap_or(rest.len());
    let (numbers, rest) = rest.split_at_checked(end)?;
    let part = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
    };
    let (pre_release, build) = match rest.strip_prefix('-') {
        Some(rest) => match rest.split_once('+') {
            Some((pre_release, build)) => (Some(pre_release), Some(build)),
            None => (Some(rest), None),
        },
        None => (None, rest.strip_prefix('+')),
    };
    if !pre_release.is_none_or(part) || !build.is_none_or(part) {
        return None;
    }
    let mut parsed = [None; 3];
    for (count, number) in numbers.split('.').enumerate() {
        let slot = parsed.get_mut(count)?;
        if matches!(number, "x" | "X" | "*") {
            continue;
        }
        let sound = !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (number.len() == 1 || !number.starts_with('0'));
        if !sound {
            return None;
        }
        *slot = Some(number.parse().unwrap_or(u64::MAX));
    }
    Some(Block {
        prefix,
        major: parsed[0],
        minor: parsed[1],
        patch: parsed[2],
        pre_release,
        build,
    })
}

fn simple(text: &str, no_match: NpmError) -> Result<Vec<Clause>, NpmError> {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let block = block(text).ok_or(no_match)?;
    let is_equal = matches!(block.prefix, "" | "=");
    let build = block.build.filter(|_| is_equal);
    let not_empty = |part: Option<&str>| part.is_some_and(|part| !part.is_empty());
    let Some(major) = block.major else {
        if !is_equal && block.prefix != ">=" || not_empty(block.pre_release) || not_empty(build) {
            return Err(NpmError::Refused);
        }
        return Ok(vec![Clause::new(GreaterOrEqual, Semantic::new(0, 0, 0))]);
    };
    let is_partial = block.minor.is_none() || block.patch.is_none();
    if is_partial && (not_empty(block.pre_release) || not_empty(build)) {
        return Err(NpmError::Refused);
    }
    let target = match (block.minor, block.patch) {
        (None, _) => Semantic::new(major, 0, 0),
        (Some(minor), None) => Semantic::new(major, minor, 0),
        (Some(minor), Some(patch)) => {
            let parts = |text: Option<&str>, may_start_with_zero: bool| {
                let text = text.unwrap_or_default();
                let parts: Vec<String> = match text {
                    "" => Vec::new(),
                    _ => text.split('.').map(str::to_owned).collect(),
                };
                let is_sound = |part: &String| {
                    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
                    !part.is_empty() && (may_start_with_zero || !is_number || part == "0" || !part.starts_with('0'))
                };
                if parts.iter().all(is_sound) {
                    Ok(parts)
                } else {
                    Err(NpmError::Refused)
                }
            };
            Semantic {
                pre_release: parts(block.pre_release, false)?,
                build: parts(build, true)?,
                ..Semantic::new(major, minor, patch)
            }
        }
    };
    let between = |high: Semantic| vec![Clause::new(GreaterOrEqual, target.clone()), Clause::new(Less, high)];
    Ok(match block.prefix {
        "^" => {
            let truncated = target.truncated();
            between(if target.major > 0 || (target.minor == 0 && block.minor.is_none()) {
                truncated.next_major()
            } else if target.minor > 0 || block.patch.is_none() {
                truncated.next_minor()
            } else {
                truncated.next_patch()
            })
        }
        "~" if block.minor.is_none() => between(target.next_major()),
        "~" => between(target.next_minor()),
        ">" if block.minor.is_none() => vec![Clause::new(GreaterOrEqual, target.next_major())],
        ">" if block.patch.is_none() => vec![Clause::new(GreaterOrEqual, target.next_minor())],
        ">" => vec![Clause::new(Greater, target)],
        ">=" => vec![Clause::new(GreaterOrEqual, target)],
        "<" => vec![Clause::new(Less, target)],
        "<=" if block.minor.is_none() => vec![Clause::new(Less, target.next_major())],
        "<=" if block.patch.is_none() => vec![Clause::new(Less, target.next_minor())],
        "<=" => vec![Clause::new(LessOrEqual, target)],
        _ if block.minor.is_none() => between(target.next_major()),
        _ if block.patch.is_none() => between(target.next_minor()),
        _ => vec![Clause::new(Equal, target)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(range: &str, version: &str) -> bool {
        NpmRange::parse(range)
            .expect(range)
            .contains(&Semantic::parse(version).expect(version))
    }

    #[test]
    fn ranges_contain_what_they_say() {
        for (range, version, wanted) in [
            (">=1.0.0 <2.0.0", "1.5.0", true),
            (">=1.0.0 <2.0.0", "2.0.0-rc.1", false),
            (">=1.0.0 <2.0.0-0", "1.5.0", true),
            (">=1.0.0-rc.1 <2.0.0", "1.0.0-rc.2", true),
            ("1.0.0 - 2", "2.5.0", true),
            ("^0.1", "0.2.0", false),
            ("^0", "0.9.0", true),
            ("~1.2", "1.2.9", true),
            ("1.2.x || 3", "3.1.0", true),
            ("1.0.0+a", "1.0.0+b", false),
            ("1.0.0", "1.0.0+b", true),
            ("", "0.0.1", true),
            ("*", "7.0.0", true),
        ] {
            assert_eq!(contains(range, version), wanted, "{version} in {range}");
        }
    }

    #[test]
    fn some_texts_are_refused_and_on_some_the_library_fails() {
        for text in [
            ">=0.0.1,<0.0.4",
            ">= 0.0.1 < 0.0.4",
            "!1.0.0",
            "1.0-rc",
            ">*",
            "a - b - c",
        ] {
            assert_eq!(NpmRange::parse(text).err(), Some(NpmError::Refused), "{text}");
        }
        assert_eq!(NpmRange::parse("a - b").err(), Some(NpmError::Crash));
    }
}
