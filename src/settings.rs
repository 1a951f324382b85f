//! Settings of the operands from environment variables.
use std::env::VarError;

/// The variable that OLM and image mirroring tools know: the bundle's `relatedImages` are made from it.
pub const RELATED_IMAGE: &str = "RELATED_IMAGE_MEMCACHED";
/// The variable of the tutorials.
pub const IMAGE: &str = "MEMCACHED_IMAGE";

/// Settings for all Memcacheds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The default image of the servers; `None` if neither variable is set.
    pub image: Option<String>,
}

impl Settings {
    /// Reads the settings with `variable`, which is [`std::env::var`] outside of tests. Blank values count as unset.
    pub fn read(variable: impl Fn(&str) -> Result<String, VarError>) -> Self {
        let image = [RELATED_IMAGE, IMAGE]
            .into_iter()
            .filter_map(|name| variable(name).ok())
            .map(|value| value.trim().to_owned())
            .find(|value| !value.is_empty());
        Self { image }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(variables: &[(&str, &str)]) -> Option<String> {
        let find = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Settings::read(|name| find(name).ok_or(VarError::NotPresent)).image
    }

    #[test]
    fn the_related_image_comes_first() {
        assert_eq!(image(&[(IMAGE, "a"), (RELATED_IMAGE, "b")]).as_deref(), Some("b"));
        assert_eq!(image(&[(IMAGE, "a"), (RELATED_IMAGE, " ")]).as_deref(), Some("a"));
        assert_eq!(image(&[]), None);
    }
}
