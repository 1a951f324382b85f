//! What a Deployment says of the template that was applied last.
use std::{fmt, str::FromStr};

/// The annotation of a Deployment that holds its [`Applied`].
pub const SERVERS: &str = "cache.example.com/applied-servers";

/// What a Deployment says of the template that was applied last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The template was rolled out on the operator's account, in turn.
    pub in_turn: bool,
    /// Digest of the template.
    pub template: String,
    /// Digest of what the user's spec says about each server.
    pub spec: String,
    /// The image in the template.
    pub image: String,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.in_turn { "in-turn" } else { "at-once" };
        write!(f, "{when} {} {} {}", self.template, self.spec, self.image)
    }
}

impl FromStr for Applied {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(4, ' ');
        let mut next = || parts.next().ok_or(());
        Ok(Self {
            in_turn: match next()? {
                "in-turn" => true,
                "at-once" => false,
                _ => return Err(()),
            },
            template: next()?.to_owned(),
            spec: next()?.to_owned(),
            image: next()?.to_owned(),
        })
    }
}
