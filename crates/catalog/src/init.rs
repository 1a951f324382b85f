//! `catalog init` and `catalog dockerfile`: the beginnings of a catalog.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;

use super::model::{Icon, Package};

/// Why a catalog cannot be initialized.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The icon is not an image.
    #[error("detected invalid type \"{0}\": not an image")]
    NotAnImage(&'static str),
}

/// A package blob.
///
/// # Errors
/// The icon's bytes are not an image.
pub fn package(name: &str, default_channel: &str, description: String, icon: Option<&[u8]>) -> Result<Package, Error> {
    let icon = match icon {
        None => None,
        Some(bytes) => Some(Icon {
            data: Some(base64::engine::general_purpose::STANDARD.encode(bytes)),
            media_type: media_type(bytes)?.to_owned(),
        }),
    };
    Ok(Package {
        name: name.to_owned(),
        default_channel: default_channel.to_owned(),
        description,
        icon,
        ..Package::default()
    })
}

/// First bytes, offset of them, media type.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\x01\0", "image/vnd.microsoft.icon"),
    (0, b"8BPS", "image/vnd.adobe.photoshop"),
    (4, b"ftypheic", "image/heif"),
    (4, b"ftypavif", "image/avif"),
];

/// The media type of a picture, by its content.
///
/// # Errors
/// It is none.
pub fn media_type(bytes: &[u8]) -> Result<&'static str, Error> {
    for (offset, signature, media_type) in SIGNATURES {
        if bytes.get(*offset..).is_some_and(|bytes| bytes.starts_with(signature)) {
            return Ok(media_type);
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Error::NotAnImage("application/octet-stream"));
    };
    // An SVG may begin with an XML declaration, comments and a document type.
    let head: String = text.chars().take(4096).collect();
    if head.contains("<svg") {
        return Ok("image/svg+xml");
    }
    Err(Error::NotAnImage("text/plain; charset=utf-8"))
}

/// Parameters of a catalog image's Dockerfile.
#[derive(Debug, Clone)]
pub struct Dockerfile<'d> {
    /// Name of the catalog directory, in the Dockerfile's directory.
    pub directory: &'d str,
    /// Image of the final stage. `scratch` for configs only.
    pub base_image: &'d str,
    /// Image whose `/bin/opm` makes the cache.
    pub builder_image: &'d str,
    /// Further labels.
    pub labels: BTreeMap<String, String>,
}

impl std::fmt::Display for Dockerfile<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dockerfile {
            directory,
            base_image,
            builder_image,
            labels,
        } = self;
        writeln!(
            formatter,
            "# The first stage checks the catalog and prepares the cache that serving starts from."
        )?;
        writeln!(formatter, "FROM {builder_image} AS builder\n")?;
        writeln!(formatter, "ADD {directory} /configs")?;
        writeln!(
            formatter,
            "RUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", \"--cache-only\"]\n"
        )?;
        writeln!(formatter, "FROM {base_image}\n")?;
        if *base_image != "scratch" {
            writeln!(formatter, "ENTRYPOINT [\"/bin/opm\"]")?;
            writeln!(formatter, "CMD [\"serve\", \"/configs\", \"--cache-dir=/tmp/cache\"]\n")?;
        }
        writeln!(formatter, "COPY --from=builder /configs /configs")?;
        writeln!(formatter, "COPY --from=builder /tmp/cache /tmp/cache\n")?;
        writeln!(formatter, "# Where clients find the blobs.")?;
        writeln!(
            formatter,
            "LABEL operators.operatorframework.io.index.configs.v1=/configs"
        )?;
        for (key, value) in labels {
            writeln!(
                formatter,
                "LABEL {}={}",
                olmkit_go::strconv::quote(key),
                olmkit_go::strconv::quote(value)
            )?;
        }
        Ok(())
    }
}

/// The Dockerfile's path for a catalog directory: in the same parent directory, with its name.
pub fn dockerfile_path(directory: &Path) -> std::path::PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".Dockerfile");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_are_told_by_their_content() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n....").unwrap(), "image/png");
        assert_eq!(
            media_type(b"<?xml version=\"1.0\"?><svg xmlns=\"x\"/>").unwrap(),
            "image/svg+xml"
        );
        assert!(media_type(b"hello").is_err());
    }
}
