//! Destination of a built image.

use std::str::FromStr;

use olmkit_oci::Location;

/// A value of `--output`.
#[derive(Debug, Clone)]
pub enum Output {
    /// The image store, under the image's name.
    Store,
    /// The registry of the image's name.
    Push,
    /// A layout or archive.
    Place(Location),
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "store" => Ok(Self::Store),
            "push" => Ok(Self::Push),
            _ => match text.parse() {
                Ok(Location::Registry(_)) | Err(_) => Err(format!(
                    "{text:?} is not a destination: write store, push, oci:DIRECTORY, oci-archive:FILE or docker-archive:FILE"
                )),
                Ok(place) => Ok(Self::Place(place)),
            },
        }
    }
}
