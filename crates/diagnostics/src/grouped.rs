//! Findings of many inputs: each rule once, with how often it was broken and a few places.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Finding, Rule, Severity, counted};
use olmkit_base::object::UntrustedText;

/// Places that are shown of a rule.
const SHOWN: usize = 3;
/// Longest message that is shown whole.
const LONGEST: usize = 200;

/// Counts the findings of many inputs, such as bundles. It keeps only printed data: each message once, with its first
/// position.
#[derive(Debug, Default)]
pub struct Grouped {
    inputs: usize,
    broken: BTreeMap<(Severity, &'static str), Broken>,
}

/// Violations of a rule.
#[derive(Debug, Default)]
struct Broken {
    findings: usize,
    inputs: usize,
    /// The last input that broke it, by its number.
    latest: usize,
    messages: BTreeMap<String, Message>,
}

/// Findings with the same message.
#[derive(Debug)]
struct Message {
    findings: usize,
    /// Position of the first of them.
    place: Option<String>,
}

impl Grouped {
    /// Counts all findings of the next input.
    pub fn add(&mut self, findings: &[Finding]) {
        self.inputs += 1;
        for finding in findings {
            let broken = self.broken.entry((finding.severity, finding.rule)).or_default();
            broken.findings += 1;
            broken.inputs += usize::from(broken.latest != self.inputs);
            broken.latest = self.inputs;
            match broken.messages.get_mut(&finding.message) {
                Some(message) => message.findings += 1,
                None => {
                    let place = finding.place();
                    let message = Message { findings: 1, place };
                    broken.messages.insert(finding.message.clone(), message);
                }
            }
        }
    }

    /// Writes the broken rules, the worst and most frequent first, each with its messages and their first position.
    /// Equal messages count as one. `noun` is the word for an input. `rules` has the rules' titles.
    ///
    /// # Errors
    ///
    /// The writer's error.
    pub fn write(&self, noun: &str, rules: &[&Rule], out: &mut dyn Write) -> io::Result<()> {
        let mut groups: Vec<_> = self.broken.iter().collect();
        groups.sort_by_key(|((severity, _), broken)| (*severity, std::cmp::Reverse(broken.findings)));
        for ((severity, rule), broken) in groups {
            let summary = rules.iter().find(|known| known.id == *rule).map(|rule| rule.summary);
            broken.write((*severity, rule, summary.unwrap_or_default()), noun, out)?;
        }
        Ok(())
    }
}

impl Broken {
    fn write(
        &self,
        (severity, rule, summary): (Severity, &str, &str),
        noun: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let color = match severity {
            Severity::Error => AnsiColor::BrightRed,
            Severity::Warning => AnsiColor::Yellow,
            Severity::Info => AnsiColor::BrightGreen,
        };
        let style = Style::new().bold().fg_color(Some(color.into()));
        writeln!(
            out,
            "{style}{severity}[{rule}]{style:#}: {}",
            UntrustedText::new(summary)
        )?;
        writeln!(
            out,
            "  {} in {}",
            counted(self.findings, "finding"),
            counted(self.inputs, noun)
        )?;
        let mut messages: Vec<_> = self.messages.iter().collect();
        messages.sort_by_key(|(_, message)| std::cmp::Reverse(message.findings));
        for (text, message) in messages.iter().take(SHOWN) {
            writeln!(out, "  - {}\n    {}", shortened(text), message.place())?;
        }
        if let Some(rest) = messages.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
            writeln!(out, "  - {rest} more")?;
        }
        Ok(())
    }
}

impl Message {
    fn place(&self) -> String {
        let others = match self.findings {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!("{}{others}", self.place.as_deref().unwrap_or_default())
    }
}

fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(LONGEST).collect();
    if shown.len() < message.len() {
        shown.push('…');
    }
    UntrustedText::new(&shown).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, Severity};

    static NAME: Rule = Rule::of_tool("CSV-6", Severity::Error, Origin::Opm, "A CSV must have a name.");
    static EXAMPLES: Rule = Rule::of_tool("CSV-10", Severity::Warning, Origin::Opm, "Kinds should have examples.");

    #[test]
    fn rules_come_once_the_worst_and_most_frequent_first() {
        let finding =
            |rule: &'static Rule, message: &str, file: &str| Finding::new(rule, rule.severity, message).file(file);
        let mut grouped = Grouped::default();
        grouped.add(&[
            finding(&EXAMPLES, "a has no example", "1.yaml"),
            finding(&EXAMPLES, "b has no example", "1.yaml"),
            finding(&NAME, "no name", "1.yaml"),
        ]);
        grouped.add(&[]);
        grouped.add(&[finding(&EXAMPLES, "b has no example", "3.yaml")]);
        let mut out = Vec::new();
        grouped.write("bundle", &[&NAME, &EXAMPLES], &mut out).unwrap();
        let text = anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(' ')).collect();
        assert_eq!(
            lines,
            [
                "  1 finding in 1 bundle",
                "  - no name",
                "    1.yaml",
                "  3 findings in 2 bundles",
                "  - b has no example",
                "    1.yaml and 1 more",
                "  - a has no example",
                "    1.yaml",
            ]
        );
        assert!(text.starts_with("error[CSV-6]: "), "{text}");
    }
}
