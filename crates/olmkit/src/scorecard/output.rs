//! scorecard's output, byte for byte except for the order of labels, which is random there.

use std::fmt::Write as _;

use olmkit_scorecard::{State, Test, TestList, TestResult};

use olmkit_go::{json as go_json, strconv};

/// Longer lines of a log end it, as they do in operator-sdk.
const LINE: usize = 64 << 10;

/// The form for people.
#[must_use]
pub fn text(list: &TestList) -> String {
    if list.items.is_empty() {
        return "0 tests selected\n".to_owned();
    }
    list.items.iter().map(|test| format!("{}\n", text_of(test))).collect()
}

fn text_of(test: &Test) -> String {
    let mut out = format!("{}\nImage:      {}\n", "-".repeat(80), test.spec.image);
    if !test.spec.entrypoint.is_empty() {
        let _ = writeln!(out, "Entrypoint: [{}]", test.spec.entrypoint.join(" "));
    }
    if !test.spec.labels.is_empty() {
        out.push_str("Labels:\n");
        for (key, value) in &test.spec.labels {
            let _ = writeln!(out, "\t{}:{}", strconv::quote(key), strconv::quote(value));
        }
    }
    if !test.status.results.is_empty() {
        out.push_str("Results:\n");
        test.status
            .results
            .iter()
            .for_each(|result| result_text(result, &mut out));
    }
    out
}

fn result_text(result: &TestResult, out: &mut String) {
    if !result.name.is_empty() {
        let _ = writeln!(out, "\tName: {}", result.name);
    }
    let state = match result.state {
        // Without the line's end.
        State::Unknown => "unknown".to_owned(),
        state => format!("{}\n", state.as_str()),
    };
    let _ = writeln!(out, "\tState: {state}");
    for (title, lines) in [("Suggestions", &result.suggestions), ("Errors", &result.errors)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\t{title}:");
            for line in lines {
                let _ = writeln!(out, "\t\t{line}");
            }
        }
    }
    if !result.log.is_empty() {
        out.push_str("\tLog:\n");
        for line in result.log.lines().take_while(|line| line.len() < LINE) {
            let _ = writeln!(out, "\t\t{line}");
        }
    }
    out.push('\n');
}

/// JSON, indented.
///
/// # Errors
/// If serde fails, which is not expected.
pub fn json(list: &TestList) -> Result<String, serde_json::Error> {
    let plain = serde_json::to_string(list)?;
    // These occur only in strings; Go escapes them so that the JSON can be embedded in HTML.
    let compact = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ]
    .iter()
    .fold(plain, |text, (c, escape)| match text.contains(*c) {
        true => text.replace(*c, escape),
        false => text,
    });
    let mut out = String::new();
    go_json::write_indented(&mut out, &compact, "  ");
    out.push('\n');
    Ok(out)
}

/// XML as test reports of many CI systems read it.
#[must_use]
pub fn xunit(list: &TestList) -> String {
    let mut out = String::from("<testsuites name=\"scorecard\">");
    for (at, test) in list.items.iter().enumerate() {
        suite(test, at + 1, &mut out);
    }
    if !list.items.is_empty() {
        out.push('\n');
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(test: &Test, number: usize, out: &mut String) {
    let name = test.spec.labels.get("test").cloned();
    let name = name.unwrap_or_else(|| format!("testsuite-{number:03}"));
    // A result with another state is omitted.
    let results: Vec<&TestResult> = test
        .status
        .results
        .iter()
        .filter(|result| result.state != State::Unknown)
        .collect();
    let count = |state| results.iter().filter(|result| result.state == state).count();
    let _ = write!(
        out,
        "\n  <testsuite name=\"{}\" tests=\"{}\" skipped=\"0\" failures=\"{}\" errors=\"{}\">\n    <properties>",
        escape(&name),
        results.len(),
        count(State::Fail),
        count(State::Error)
    );
    let entrypoint = test.spec.entrypoint.join(" ");
    let phase = test.spec.labels.get("cluster-phase");
    let properties = [
        ("spec.image", Some(&test.spec.image)),
        ("spec.entrypoint", Some(&entrypoint)),
        ("labels.test", Some(&name)),
        ("labels.cluster-phase", phase),
    ];
    for (name, value) in properties {
        if let Some(value) = value {
            let _ = write!(
                out,
                "\n      <property name=\"{name}\" value=\"{}\"></property>",
                escape(value)
            );
        }
    }
    out.push_str("\n    </properties>");
    for result in results {
        let time = result.creation_timestamp.as_deref().unwrap_or("0001-01-01T00:00:00Z");
        let _ = write!(
            out,
            "\n    <testcase name=\"{}\" time=\"{}\">\n      <system-out>{}</system-out>",
            escape(&result.name),
            escape(time),
            escape(&result.log)
        );
        let element = match result.state {
            State::Fail => Some("failure"),
            State::Error => Some("error"),
            State::Pass | State::Unknown => None,
        };
        if let Some(element) = element {
            let message = inner_text(&result.errors.join("\n"));
            let _ = write!(out, "\n      <{element} type=\"{element}\">{message}</{element}>");
        }
        out.push_str("\n    </testcase>");
    }
    out.push_str("\n  </testsuite>");
}

/// Text as Go's XML writer escapes it.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            c if is_xml(c) => out.push(c),
            _ => out.push('\u{FFFD}'),
        }
    }
    out
}

/// operator-sdk writes messages without escapes, which breaks the document if one has a `<` or `&`. Else it is the same.
fn inner_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            c if is_xml(c) => out.push(c),
            _ => out.push('\u{FFFD}'),
        }
    }
    out
}

fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use olmkit_scorecard::TestConfiguration;

    use super::*;

    fn list() -> TestList {
        let result = |name: &str, state, log: &str, errors: &[&str]| TestResult {
            log: log.to_owned(),
            state,
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
            ..TestResult::new(name)
        };
        let results = [
            result("one", State::Pass, "l1\nl2\t\"q\" 'x' <y>\n", &[]),
            result("two", State::Fail, "", &["m1", "m2 \"q\" 'x'"]),
            result("three", State::Error, "z", &["e"]),
            result("none", State::Unknown, "z", &[]),
        ];
        let labelled = TestConfiguration {
            image: "q/i:v1".to_owned(),
            labels: [("test".to_owned(), "a<b>&\"'".to_owned())].into(),
            ..TestConfiguration::default()
        };
        [
            Test::new(labelled, results.into_iter().collect()),
            Test::new(TestConfiguration::default(), Vec::new().into_iter().collect()),
        ]
        .into_iter()
        .collect()
    }

    /// Output of Go's encoding/xml for operator-sdk's types with these values.
    #[test]
    fn xunit_is_what_go_writes() {
        let expected = r#"<testsuites name="scorecard">
  <testsuite name="a&lt;b&gt;&amp;&#34;&#39;" tests="3" skipped="0" failures="1" errors="1">
    <properties>
      <property name="spec.image" value="q/i:v1"></property>
      <property name="spec.entrypoint" value=""></property>
      <property name="labels.test" value="a&lt;b&gt;&amp;&#34;&#39;"></property>
    </properties>
    <testcase name="one" time="0001-01-01T00:00:00Z">
      <system-out>l1&#xA;l2&#x9;&#34;q&#34; &#39;x&#39; &lt;y&gt;&#xA;</system-out>
    </testcase>
    <testcase name="two" time="0001-01-01T00:00:00Z">
      <system-out></system-out>
      <failure type="failure">m1
m2 "q" 'x'</failure>
    </testcase>
    <testcase name="three" time="0001-01-01T00:00:00Z">
      <system-out>z</system-out>
      <error type="error">e</error>
    </testcase>
  </testsuite>
  <testsuite name="testsuite-002" tests="0" skipped="0" failures="0" errors="0">
    <properties>
      <property name="spec.image" value=""></property>
      <property name="spec.entrypoint" value=""></property>
      <property name="labels.test" value="testsuite-002"></property>
    </properties>
  </testsuite>
</testsuites>
"#;
        assert_eq!(xunit(&list()), expected);
        let none: TestList = [].into_iter().collect();
        assert_eq!(xunit(&none), "<testsuites name=\"scorecard\"></testsuites>\n");
    }

    #[test]
    fn text_and_json_of_every_state() {
        let out = text(&list());
        assert!(
            out.contains("\tName: one\n\tState: pass\n\n\tLog:\n\t\tl1\n\t\tl2\t\"q\" 'x' <y>\n\n"),
            "{out}"
        );
        assert!(
            out.contains("\tState: fail\n\n\tErrors:\n\t\tm1\n\t\tm2 \"q\" 'x'\n\n"),
            "{out}"
        );
        assert!(out.contains("\tName: none\n\tState: unknown\n\tLog:\n"), "{out}");
        let json = json(&list()).unwrap();
        assert!(json.contains("\"test\": \"a\\u003cb\\u003e\\u0026\\\"'\""), "{json}");
        assert!(json.contains("\"state\": \"\",\n"), "{json}");
        assert!(json.ends_with("\"status\": {}\n    }\n  ]\n}\n"), "{json}");
    }
}
