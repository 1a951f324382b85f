//! Images that catalog commands read, from registries and layouts.

use olmkit::catalog::render::reference::{Images, Unpacked};

use crate::cli::registry_flags::RegistryFlags;

/// Images by reference, read with the flags of the command.
pub struct RegistryImages<'f> {
    flags: &'f RegistryFlags,
}

impl<'f> RegistryImages<'f> {
    pub fn new(flags: &'f RegistryFlags) -> Self {
        RegistryImages { flags }
    }
}

impl Images for RegistryImages<'_> {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        let _ = self.flags;
        Err(format!(
            "{reference} is no directory here, and reading images is not there yet"
        ))
    }
}
