//! Metadata of an operator that cannot be derived: from flags, a settings file, or prompts on a terminal.

use std::io::{BufRead, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use olmkit::project::{Link, Maintainer, Package};

/// Flags for the same answers.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Display name of the operator.
    #[arg(long, value_name = "TEXT")]
    pub display_name: Option<String>,
    /// Description of the operator, in Markdown.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Name of the provider.
    #[arg(long, value_name = "NAME")]
    pub provider_name: Option<String>,
    /// URL of the provider.
    #[arg(long, value_name = "URL")]
    pub provider_url: Option<String>,
    /// Keywords, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub keywords: Vec<String>,
    /// Maintainers, comma-separated NAME:EMAIL.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub maintainers: Vec<String>,
    /// Image file: .svg, .png, .jpg or .gif.
    #[arg(long, value_name = "FILE")]
    pub icon: Option<String>,
}

impl Flags {
    /// Returns true if any was given.
    pub fn any(&self) -> bool {
        self.display_name.is_some()
            || self.description.is_some()
            || self.provider_name.is_some()
            || self.provider_url.is_some()
            || self.icon.is_some()
            || !self.keywords.is_empty()
            || !self.maintainers.is_empty()
    }

    /// Overwrites the existing values with the answers.
    pub fn apply(&self, package: &mut Package) -> anyhow::Result<()> {
        if let Some(name) = &self.display_name {
            package.display_name.clone_from(name);
        }
        if let Some(description) = &self.description {
            package.description.clone_from(description);
        }
        if self.provider_name.is_some() || self.provider_url.is_some() {
            let old = package.provider.take().unwrap_or(Link {
                name: String::new(),
                url: String::new(),
            });
            package.provider = Some(Link {
                name: self.provider_name.clone().unwrap_or(old.name),
                url: self.provider_url.clone().unwrap_or(old.url),
            });
        }
        if !self.keywords.is_empty() {
            package.keywords = self.keywords.iter().map(|word| word.trim().to_owned()).collect();
        }
        if !self.maintainers.is_empty() {
            package.maintainers = self
                .maintainers
                .iter()
                .map(|text| maintainer(text))
                .collect::<Result<_, _>>()?;
        }
        if let Some(icon) = &self.icon {
            package.set_icon(std::path::Path::new(icon))?;
        }
        Ok(())
    }
}

fn maintainer(text: &str) -> anyhow::Result<Maintainer> {
    match text.trim().split_once(':') {
        Some((name, email)) if !name.is_empty() && email.contains('@') => Ok(Maintainer {
            name: name.trim().to_owned(),
            email: email.trim().to_owned(),
        }),
        _ => bail!("maintainer {text:?} must be name:address, for example `Jo Doe:jo@example.com`"),
    }
}

/// Returns true if prompts are possible.
pub fn terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts for the same values as operator-sdk. Prompts go to standard error. An empty answer keeps the value in
/// brackets.
pub fn ask(package: &Package, mut input: impl BufRead) -> anyhow::Result<Flags> {
    let provider = package.provider.clone().unwrap_or(Link {
        name: String::new(),
        url: String::new(),
    });
    let maintainers: Vec<String> = package
        .maintainers
        .iter()
        .map(|one| format!("{}:{}", one.name, one.email))
        .collect();
    let mut question = |text: &str, present: &str, required: bool| question(&mut input, text, present, required);
    let list = |text: String| -> Vec<String> {
        text.split(',')
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect()
    };
    Ok(Flags {
        display_name: Some(question("Display name for the operator", &package.display_name, true)?),
        description: Some(question("Description for the operator", &package.description, true)?),
        provider_name: Some(question("Provider's name for the operator", &provider.name, true)?),
        provider_url: Some(question(
            "Any relevant URL for the provider name",
            &provider.url,
            false,
        )?),
        keywords: list(question(
            "Comma-separated list of keywords for your operator",
            &package.keywords.join(","),
            true,
        )?),
        maintainers: list(question(
            "Comma-separated list of maintainers and their emails (e.g. 'name1:email1, name2:email2')",
            &maintainers.join(","),
            true,
        )?),
        icon: Some(question("Icon file (.svg, .png, .jpg or .gif)", "", false)?).filter(|icon| !icon.is_empty()),
    })
}

fn question(input: &mut impl BufRead, text: &str, present: &str, required: bool) -> anyhow::Result<String> {
    loop {
        let kind = if required { "required" } else { "optional" };
        let shown = if present.is_empty() {
            String::new()
        } else {
            format!(" [{present}]")
        };
        eprint!("\n{text} ({kind}){shown}:\n> ");
        std::io::stderr().flush()?;
        let mut line = String::new();
        if input.read_line(&mut line).context("cannot read the answer")? == 0 {
            bail!("standard input ends before all prompts are answered; use flags or --interactive=false");
        }
        let answer = line.trim().trim_matches(['`', '\'', '"']);
        match answer {
            "" if !present.is_empty() => return Ok(present.to_owned()),
            "" if required => eprintln!("An answer is needed."),
            answer => return Ok(answer.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_settings() {
        let mut package = Package::parse("displayName: Old\ndescription: Kept.\n").unwrap();
        let answers = "New name\n\nExample\n\na, b\nJo Doe:jo@example.com\n\n";
        let flags = ask(&package, answers.as_bytes()).unwrap();
        flags.apply(&mut package).unwrap();
        assert_eq!(
            (package.display_name.as_str(), package.description.as_str()),
            ("New name", "Kept.")
        );
        assert_eq!(package.keywords, ["a", "b"]);
        assert_eq!(package.maintainers[0].email, "jo@example.com");
    }

    #[test]
    fn a_required_answer_is_asked_for_again_until_the_input_ends() {
        let package = Package::parse("displayName: ''\ndescription: ''\n").unwrap();
        let error = ask(&package, "\n\n\n".as_bytes()).unwrap_err();
        assert!(error.to_string().contains("--interactive=false"), "{error}");
    }
}
