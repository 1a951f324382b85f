//! META-5: unreplaced placeholders of generators.

use serde_json::Value;

use crate::bundle::Object;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field};

define_rules! {
    META_5 = {
        id: "META-5",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "Descriptions and contacts for users should not be placeholders.",
        why: "Catalogs and consoles show the placeholder, and users cannot reach the maintainers.",
        bad: "description: Demo description. TODO.\nmaintainers:\n- name: Maintainer Name\n  email: your@email.com",
        good: "description: Runs demo servers.\nmaintainers:\n- name: Demo team\n  email: demo@redhat.com",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "descriptions and contacts are for users, and example domains are reserved (RFC 2606)",
            "any",
            "https://olm.operatorframework.io/docs/best-practices/common/",
        ),
    }
}

/// Prefixes of generated placeholders, in lowercase.
const BEGINNINGS: [&str; 22] = [
    "describe here ",
    "describe your operator",
    "description here",
    "enter a description",
    "enter description",
    "enter your description",
    "insert a description",
    "insert description",
    "insert your description",
    "add description",
    "add a description",
    "lorem ipsum",
    "your description",
    "your operator description",
    "replace this ",
    "write a description",
    "write your description",
    "add your description",
    "description of your operator",
    "a description of your operator",
    "put your description",
    "put description",
];

/// Strings that describe nothing, in lowercase.
const EMPTY: [&str; 8] = [
    "description",
    "n/a",
    "xxx",
    "test",
    "foo",
    "bar",
    "changeme",
    "change me",
];

/// Words after a "TODO" that names an application for tasks, in lowercase.
const TASKS: [&str; 10] = [
    "list",
    "lists",
    "app",
    "apps",
    "application",
    "applications",
    "item",
    "items",
    "task",
    "tasks",
];

/// Path segments that generators and templates contain instead of an organization or a repository.
const SEGMENTS: [&str; 8] = [
    "your-org",
    "your-organization",
    "your-repo",
    "your-username",
    "your-user",
    "your-project",
    "your_org",
    "your_repo",
];

/// Words that mark an unfinished text, as whole words in this spelling.
const MARKS: [&str; 5] = ["TODO", "FIXME", "TBD", "CHANGEME", "CHANGE_ME"];

/// Longer strings may contain the words for other reasons.
const SHORT: usize = 200;

/// Names that operator-sdk writes.
const NAMES: [&str; 5] = [
    "maintainer name",
    "provider name",
    "your name",
    "your company",
    "your organization",
];

/// Reserved or obviously invented domains.
const DOMAINS: [&str; 12] = [
    "example.com",
    "example.org",
    "example.net",
    "your.domain",
    "your-domain.com",
    "yourdomain.com",
    "your-company.com",
    "yourcompany.com",
    "mycompany.com",
    "mydomain.com",
    "my.domain",
    "domain.com",
];

/// Last labels of domains that do not exist in the DNS. `domain` is operator-sdk's.
const TOP_LEVEL: [&str; 9] = [
    "domain",
    "example",
    "invalid",
    "test",
    "localhost",
    "local",
    "internal",
    "tld",
    "lan",
];

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut found = Vec::new();
    if let Some(csv) = context.csv() {
        of_csv(&csv, &mut found);
    }
    for crd in context.bundle.crds() {
        scaffolded_fields(crd, &mut found);
    }
    found
}

fn of_csv(csv: &Csv<'_>, found: &mut Vec<Checked>) {
    let mut report = |pointer: &str, text: &str| {
        let shown: String = text.trim().chars().take(80).collect();
        let path = crate::diagnostics::json_path(pointer);
        let checked = Checked::new(&META_5, format!("{path} is a placeholder: {shown:?}"));
        found.push(
            checked
                .at(csv.object, pointer)
                .hint("replace it with your own text or contact, or remove it"),
        );
    };
    for pointer in [
        "/spec/description",
        "/spec/displayName",
        "/metadata/annotations/description",
    ] {
        let text = csv.text(pointer);
        if is_placeholder(text) {
            report(pointer, text);
        }
    }
    for (at, owned) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let text = field(owned, "description");
        if is_placeholder(text) {
            report(&format!("/spec/customresourcedefinitions/owned/{at}/description"), text);
        }
    }
    for (at, maintainer) in csv.list("/spec/maintainers").iter().enumerate() {
        let (name, email) = (field(maintainer, "name"), field(maintainer, "email"));
        if is_name(name) {
            report(&format!("/spec/maintainers/{at}/name"), name);
        }
        if is_email(email) {
            report(&format!("/spec/maintainers/{at}/email"), email);
        }
    }
    for (at, link) in csv.list("/spec/links").iter().enumerate() {
        let url = field(link, "url");
        if is_url(url) {
            report(&format!("/spec/links/{at}/url"), url);
        }
    }
    let (name, url) = (csv.text("/spec/provider/name"), csv.text("/spec/provider/url"));
    if is_name(name) {
        report("/spec/provider/name", name);
    }
    if is_url(url) {
        report("/spec/provider/url", url);
    }
}

/// The field `foo` that kubebuilder scaffolds.
fn scaffolded_fields(crd: &Object, found: &mut Vec<Checked>) {
    let versions = crd.value.pointer("/spec/versions").and_then(Value::as_array);
    for (at, version) in versions.into_iter().flatten().enumerate() {
        let pointer = "/schema/openAPIV3Schema/properties/spec/properties/foo";
        let text = version
            .pointer(pointer)
            .map(|example| field(example, "description"))
            .unwrap_or_default();
        let text = text.to_lowercase();
        if text.starts_with("foo is an example field of") {
            let path = format!("/spec/versions/{at}{pointer}");
            let message = format!("the field `foo` of {} is kubebuilder's example field", crd.name());
            let hint = "remove the field from the type, or give it a name and description of your own";
            found.push(Checked::new(&META_5, message).at(crd, &path).hint(hint));
        }
    }
}

fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let lower = text.get(..text.len().min(SHORT)).unwrap_or(text).to_lowercase();
    let begins = BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning));
    // `TODO(user): …` is kubebuilder's.
    let is_mark = |word: &str| {
        let word = word.split(['(', ':']).next().unwrap_or_default();
        MARKS.contains(&word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
    };
    let words: Vec<&str> = text.split_whitespace().take(SHORT).collect();
    let is_marked = words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).map(|next| next.to_lowercase()).unwrap_or_default();
        let is_task = TASKS.contains(&next.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
        is_mark(word) && !(*word == "TODO" && is_task)
    });
    begins || is_slot(text) || EMPTY.contains(&lower.as_str()) || text.len() <= SHORT && is_marked
}

/// Returns true if a text is only a name in angle brackets, such as `<description>`.
fn is_slot(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| !inner.is_empty() && inner.len() <= 40 && !inner.contains(['<', '>', '/']))
}

fn is_name(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    NAMES.contains(&name.as_str()) || MARKS.contains(&name.to_uppercase().as_str()) || is_slot(&name)
}

fn is_email(email: &str) -> bool {
    let email = email.trim().to_lowercase();
    match email.rsplit_once('@') {
        Some((user, "email.com")) => matches!(user, "your" | "name" | "user" | "me" | "you"),
        Some((_, domain)) => is_made_up(domain),
        None => false,
    }
}

fn is_url(url: &str) -> bool {
    let url = url.trim().to_lowercase();
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let mut parts = rest.split(['/', '?', '#']);
    let host = parts.next().unwrap_or_default();
    if parts.any(|part| SEGMENTS.contains(&part) || is_slot(part)) || MARKS.contains(&host.to_uppercase().as_str()) {
        return true;
    }
    let host = host.rsplit('@').next().unwrap_or_default();
    is_made_up(host.split(':').next().unwrap_or_default())
}

fn is_made_up(domain: &str) -> bool {
    let is_below = |known: &str| {
        domain
            .strip_suffix(known)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let last = domain.rsplit('.').next().unwrap_or_default();
    DOMAINS.iter().any(|known| is_below(known)) || TOP_LEVEL.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_generators_are_placeholders_and_real_ones_are_not() {
        for text in [
            "Cache Operator description. TODO.",
            "Describe here what the operator does, in Markdown.\n",
            "TBD",
            "TODO(user): Add simple overview of use/purpose",
            "FIXME: describe",
            "Your operator description goes here",
            "Lorem ipsum dolor sit amet",
            "Add your description here",
            "Enter description here",
            "<description>",
            "N/A",
            "Test",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        let long = format!(
            "{} TODO lists are managed by this operator.",
            "Manages work. ".repeat(20)
        );
        for text in [
            "Manages to-do lists.",
            "Runs a todo app.",
            "A TODO list operator",
            "Runs TODO apps.",
            "Tests <things> and <others>",
            "Todoist",
            "",
            &long,
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }

    #[test]
    fn contacts_at_made_up_domains_are_placeholders_and_real_ones_are_not() {
        for email in [
            "your@email.com",
            "team@example.com",
            "hello@hello.example",
            "a@shop.your.domain",
        ] {
            assert!(is_email(email), "{email}");
        }
        for email in ["info@percona.com", "someone@email.com", "a@example.com.br", "", "test"] {
            assert!(!is_email(email), "{email}");
        }
        for url in [
            "https://cache-operator.domain",
            "https://your.domain",
            "http://example.com/docs?a=b",
            "https://github.com/your-org/your-repo",
            "https://github.com/<org>/demo",
            "http://TODO",
        ] {
            assert!(is_url(url), "{url}");
        }
        for url in [
            "https://github.com/example/demo",
            "https://counterexample.com",
            "example.com",
            "",
        ] {
            assert!(!is_url(url), "{url}");
        }
        assert!(is_name("Maintainer Name") && is_name("TODO") && !is_name("Demo team"));
    }
}
