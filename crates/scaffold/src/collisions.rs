//! Names that two kinds of a project cannot both have.

use crate::layout::in_group;
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, names};

/// Refuses names that would meet those of another kind.
pub(crate) fn check(file: &ProjectFile, known: &[Resource], resource: &Resource) -> Result<(), Error> {
    for other in known.iter().filter(|other| !other.is_kind_of(resource)) {
        let foreign = other.foreign.is_some() || resource.foreign.is_some();
        let same_file = names::module(&other.kind) == names::module(&resource.kind);
        if foreign && same_file && !(in_group(other) || in_group(resource)) {
            return Err(Error::Usage(format!(
                "the reconcilers of {} and {} would share the file {}.rs",
                [other.group.as_str(), &other.kind].join(" ").trim(),
                [resource.group.as_str(), &resource.kind].join(" ").trim(),
                names::module(&resource.kind)
            )));
        }
        if foreign {
            continue;
        }
        if other.group != resource.group && !file.multigroup() {
            return Err(Error::Usage(format!(
                "the project already uses API group {}; run olmkit edit --multigroup to add {}",
                other.group, resource.group
            )));
        }
        if other.group == resource.group && other.plural == resource.plural {
            return Err(Error::Usage(format!(
                "the kind {} of the group {} has the plural {}; choose another with --plural",
                other.kind, other.group, other.plural
            )));
        }
        if other.group == resource.group && names::module(&other.kind) == names::module(&resource.kind) {
            return Err(Error::Usage(format!(
                "the kinds {} and {} would share the file {}.rs; choose another name",
                other.kind,
                resource.kind,
                names::module(&resource.kind)
            )));
        }
    }
    Ok(())
}
