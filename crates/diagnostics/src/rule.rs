//! Definition of a rule.

use super::Severity;

/// Origin of a rule, which determines the result that it affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `operator-sdk bundle validate` always checks it, in this part. It affects the result.
    OperatorSdk(&'static str),
    /// An optional validator of operator-sdk checks it. It affects the result if the validator is selected.
    OptionalValidator(&'static str),
    /// A built-in test of operator-sdk's scorecard checks it. It decides the state of that test.
    Scorecard(&'static str),
    /// `opm validate` checks it. It affects the result.
    Opm,
    /// The pipeline of an operator repository checks it, in this suite. It affects the result of `repo check`.
    Pipeline(&'static str),
    /// A lint: only olmkit has it, and it never changes the result unless the user asks for that.
    Lint,
}

/// Evidence that a lint is correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// A real API server, which rejects, drops or warns.
    ApiServer,
    /// The real OLM.
    Olm,
    /// Recorded answers of OLM v1's own code.
    OlmV1,
    /// Recorded answers of operator-sdk or opm, or of the libraries that they use.
    Tools,
    /// A documented convention without a failure, which the evidence names.
    Convention,
}

impl Witness {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "the API server",
            Self::Olm => "OLM",
            Self::OlmV1 => "OLM v1",
            Self::Tools => "operator-sdk and opm",
            Self::Convention => "convention",
        }
    }
}

/// Evidence that a lint is correct: with the defect the effect occurs, without it it does not. A lint without evidence
/// runs only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// The program that shows it.
    pub by: Witness,
    /// The effect.
    pub effect: &'static str,
    /// The version that was tested, and if it is documented, the version that introduced it.
    pub version: &'static str,
    /// The test that shows it, as `FILE: FUNCTION`; for a convention, the document.
    pub shown_by: &'static str,
}

impl Proof {
    /// Creates the evidence.
    pub const fn new(by: Witness, effect: &'static str, version: &'static str, shown_by: &'static str) -> Option<Self> {
        Some(Self {
            by,
            effect,
            version,
            shown_by,
        })
    }
}

/// A family of rules: they have the same source and a common page of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// Rules of `operator-sdk bundle validate`.
    OperatorSdk,
    /// Rules of operator-sdk's optional validators.
    OptionalValidators,
    /// Rules of scorecard's built-in tests.
    Scorecard,
    /// Lints of bundles.
    BundleLints,
    /// Rules of OLM v1 about bundles.
    OlmV1,
    /// Rules of `opm validate`.
    Opm,
    /// Lints of catalogs.
    CatalogLints,
    /// Rules of the pipelines of operator repositories.
    Pipelines,
    /// Rules of operatorhub.io.
    OperatorHub,
    /// Rules of preflight.
    Preflight,
}

impl Family {
    /// The title of its page.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Family::OperatorSdk => "operator-sdk rules",
            Family::OptionalValidators => "Optional validators",
            Family::Scorecard => "Scorecard rules",
            Family::BundleLints => "Bundle lints",
            Family::OlmV1 => "OLM v1 rules",
            Family::Opm => "opm rules",
            Family::CatalogLints => "Catalog lints",
            Family::Pipelines => "Hosted pipeline rules",
            Family::OperatorHub => "operatorhub.io rules",
            Family::Preflight => "preflight rules",
        }
    }

    /// The name of its page in `docs/reference/rules`, without the extension.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Family::OperatorSdk => "operator-sdk",
            Family::OptionalValidators => "optional-validators",
            Family::Scorecard => "scorecard",
            Family::BundleLints => "bundle-lints",
            Family::OlmV1 => "olm-v1",
            Family::Opm => "opm",
            Family::CatalogLints => "catalog-lints",
            Family::Pipelines => "pipelines",
            Family::OperatorHub => "operatorhub",
            Family::Preflight => "preflight",
        }
    }
}

/// One rule. It is a constant next to the check that yields its findings. `rules` collects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The id in findings. It never changes and is never used again.
    pub id: &'static str,
    /// The worst severity of its findings.
    pub severity: Severity,
    /// Its origin.
    pub origin: Origin,
    /// The obligation, one sentence.
    pub summary: &'static str,
    /// The consequence of a violation.
    pub why: &'static str,
    /// An input that breaks it.
    pub bad: &'static str,
    /// The corrected input.
    pub good: &'static str,
    /// The version of olmkit that introduced it.
    pub since: &'static str,
    /// Evidence that it is correct. Rules of other tools determine the results of those tools and need none.
    pub proof: Option<Proof>,
}

impl Rule {
    /// Defaults of `define_rules!`.
    #[doc(hidden)]
    pub const BLANK: Self = Self {
        id: "",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "",
        why: "",
        bad: "",
        good: "",
        since: "",
        proof: None,
    };

    /// The family, which has a page of the documentation.
    #[must_use]
    pub fn family(&self) -> Family {
        match self.origin {
            Origin::OperatorSdk(_) => Family::OperatorSdk,
            Origin::OptionalValidator(_) => Family::OptionalValidators,
            Origin::Scorecard(_) => Family::Scorecard,
            Origin::Opm => Family::Opm,
            Origin::Pipeline("operatorhub") => Family::OperatorHub,
            Origin::Pipeline("preflight") => Family::Preflight,
            Origin::Pipeline(_) => Family::Pipelines,
            Origin::Lint if self.id.starts_with("catalog-") => Family::CatalogLints,
            Origin::Lint if self.id.starts_with("V1-") => Family::OlmV1,
            Origin::Lint => Family::BundleLints,
        }
    }

    /// The URL of its documentation.
    #[must_use]
    pub fn page(&self) -> String {
        let heading = self.id.to_lowercase().replace('/', "");
        format!(
            "{}/blob/main/docs/reference/rules/{}.md#{heading}",
            env!("CARGO_PKG_REPOSITORY"),
            self.family().file()
        )
    }

    /// Makes a rule of another tool outside this crate.
    pub const fn of_tool(id: &'static str, severity: Severity, origin: Origin, summary: &'static str) -> Self {
        let mut rule = Self::BLANK;
        rule.id = id;
        rule.severity = severity;
        rule.origin = origin;
        rule.summary = summary;
        rule
    }

    /// Sets the consequence of a violation, and the version of olmkit that introduced the rule.
    #[must_use]
    pub const fn because(mut self, why: &'static str, since: &'static str) -> Self {
        self.why = why;
        self.since = since;
        self
    }

    /// Adds an input that breaks the rule, and the corrected input.
    #[must_use]
    pub const fn example(mut self, bad: &'static str, good: &'static str) -> Self {
        self.bad = bad;
        self.good = good;
        self
    }

    /// Returns true if the rule is checked by default: a lint needs evidence.
    pub fn is_default(&self) -> bool {
        self.origin != Origin::Lint || self.proof.is_some()
    }
}

/// Defines the rules of one file of checks: a static [`Rule`] for each, and `RULES` with all of them for the registry, so
/// that none can be forgotten there.
#[doc(hidden)]
#[macro_export]
macro_rules! define_rules {
    ($($name:ident = { $($field:ident: $value:expr),* $(,)? })*) => {
        $(pub(crate) static $name: $crate::Rule = {
            let mut rule = $crate::Rule::BLANK;
            $(rule.$field = $value;)*
            rule
        };)*

        /// The rules of this file.
        pub(crate) static RULES: &[&$crate::Rule] = &[$(&$name),*];
    };
}
