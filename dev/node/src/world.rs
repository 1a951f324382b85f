//! The state that the checks of all flows share: the run, the package, and the objects before the first check.

use std::cell::Cell;

use crate::checks::{Checks, Inventory, inventory, same_inventory};
use crate::package::{self, Package};
use crate::run::{Namespace, Run};

/// The state that the flows share.
pub struct World<'a> {
    pub run: &'a Run,
    pub package: Package,
    before: Inventory,
    published: Cell<bool>,
}

impl<'a> World<'a> {
    /// The helper image of the flows.
    pub const HELPER: &'static str = "localhost:5000/olmkit/helper:e2e";

    /// Copies the bundles and lists the objects of the cluster.
    pub fn new(run: &'a Run) -> anyhow::Result<Self> {
        Ok(Self {
            run,
            package: Package::stage(run)?,
            before: inventory(run)?,
            published: Cell::new(false),
        })
    }

    /// Pushes the operator and bundle images at the first call.
    pub fn publish_once(&self) -> anyhow::Result<()> {
        if !self.published.get() {
            self.package.publish_images(self.run)?;
            self.published.set(true);
        }
        Ok(())
    }

    /// The bundle image of a version, in the local registry.
    pub fn bundle_image(&self, version: &str) -> String {
        package::reach(self.run, &self.package.bundle_image(version))
    }

    pub fn old_version(&self) -> &str {
        &self.package.old_version
    }

    pub fn new_version(&self) -> &str {
        &self.package.new_version
    }

    /// The directory of the released bundle.
    pub fn old_bundle(&self) -> String {
        self.run.work.join("old-bundle").display().to_string()
    }

    /// The directory of the bundle of this version.
    pub fn new_bundle(&self) -> String {
        self.run.work.join("new-bundle").display().to_string()
    }

    /// Builds and pushes the helper image.
    pub fn push_helper(&self) -> anyhow::Result<()> {
        self.run.olmkit("image build helper --tag").arg(Self::HELPER).run()?;
        package::push(self.run, Self::HELPER)
    }

    /// Fails if the cluster has objects that it did not have before the flows.
    pub fn nothing_is_left(&self) -> anyhow::Result<()> {
        same_inventory(self.run, &self.before)
    }

    /// Fails if an object that existed before the flows is missing.
    pub fn nothing_is_missing(&self) -> anyhow::Result<()> {
        let now = inventory(self.run)?;
        let missing: Vec<&str> = self.before.difference(&now).map(String::as_str).collect();
        anyhow::ensure!(missing.is_empty(), "missing: {}", missing.join(", "));
        Ok(())
    }

    /// Deletes the namespace, and compares the objects.
    pub fn namespace_is_removed(&self, space: &Namespace) -> anyhow::Result<()> {
        space.delete()?;
        self.nothing_is_left()
    }

    /// Two checks: `cleanup`, and that nothing is left of the namespace.
    pub fn check_cleanup(&self, checks: &mut Checks, space: &Namespace) {
        checks.check("cleanup", || space.cleaned_up());
        checks.check("nothing is left of it", || self.namespace_is_removed(space));
    }
}
