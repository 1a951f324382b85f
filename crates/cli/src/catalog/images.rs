//! Images that catalog commands read: from registries, the image store, layouts and archives.

use olmkit::catalog::render::reference::{Directory, Images, Unpacked};
use olmkit_oci::registry::Platforms;
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

/// Images by reference, read with the flags of the command.
pub struct RegistryImages<'f> {
    flags: &'f RegistryFlags,
}

impl<'f> RegistryImages<'f> {
    pub fn new(flags: &'f RegistryFlags) -> Self {
        RegistryImages { flags }
    }

    fn read(&self, reference: &str) -> anyhow::Result<Unpacked> {
        let location: Location = reference.parse()?;
        let platform = Platform::host();
        let client = self.flags.client()?;
        let fetched = block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
        let labels = fetched.image(&platform)?.config.config.labels;
        let directory = olmkit::temporary::Directory::new("catalog")?;
        fetched.unpack(&platform, directory.path(), &[])?;
        Ok(Unpacked {
            directory: Directory::Temporary(directory),
            labels,
        })
    }
}

impl Images for RegistryImages<'_> {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        self.read(reference).map_err(|error| crate::error_message(&error))
    }
}
