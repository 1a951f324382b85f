//! The size limits of OLM and the API server.

use crate::base::cause::{Cause, Code};
use crate::base::json::text;
use crate::bundle::facts::BundleFacts;

/// etcd rejects larger requests by default. The status of an InstallPlan contains every manifest of an inline bundle.
const ETCD_LIMIT: usize = 1_500_000;

/// A bundle image is unpacked into one ConfigMap, as base64 of gzip; OLM uses the default limit of `opm alpha bundle
/// extract`.
const UNPACK_LIMIT: usize = 1 << 20;

/// Parts of a bundle that are too large. `inline` bundles are copied into the InstallPlan, others are unpacked from
/// their image.
pub fn check(bundle: &BundleFacts, inline: bool) -> Vec<Cause> {
    let sizes: Vec<usize> = bundle
        .manifests
        .iter()
        .map(|manifest| manifest.to_string().len())
        .collect();
    let mut causes: Vec<Cause> = bundle
        .manifests
        .iter()
        .zip(&sizes)
        .filter(|(_, size)| **size > ETCD_LIMIT)
        .map(|(manifest, size)| {
            Cause::lasting(
                Code::BundleTooLarge,
                format!(
                    "{} {} is {size} bytes; the API server stores at most about {ETCD_LIMIT}",
                    text(manifest, "/kind"),
                    text(manifest, "/metadata/name")
                ),
                "shorten descriptions in the schema or the CSV",
            )
        })
        .collect();
    if !inline && bundle.unpacked_size > UNPACK_LIMIT {
        causes.push(Cause::lasting(
            Code::UnpackTooLarge,
            format!(
                "the manifests take {} bytes compressed, OLM unpacks at most {UNPACK_LIMIT} from an image",
                bundle.unpacked_size
            ),
            "make the bundle smaller: shorten descriptions in CRD schemas, remove objects that the operator can create itself; olmkit bundle validate shows the sizes",
        ));
    }
    let total: usize = sizes.iter().sum();
    // The plan contains manifests as JSON inside JSON: quotes are escaped.
    let escaped: usize = bundle
        .manifests
        .iter()
        .map(|manifest| manifest.to_string().matches('"').count())
        .sum();
    if inline && causes.is_empty() && total + escaped > ETCD_LIMIT {
        causes.push(Cause::lasting(
            Code::BundleTooLarge,
            format!("the bundle needs {} bytes in the InstallPlan, which has room for at most about {ETCD_LIMIT} when a directory is served inline", total + escaped),
            "build and push the bundle image (olmkit image build, push) and run: olmkit run bundle IMAGE",
        ));
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bundle(size: usize, unpacked_size: usize) -> BundleFacts {
        BundleFacts {
            manifests: vec![json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": "x".repeat(size)})],
            unpacked_size,
            ..BundleFacts::default()
        }
    }

    fn codes(bundle: &BundleFacts, inline: bool) -> Vec<Code> {
        check(bundle, inline).iter().map(|cause| cause.code).collect()
    }

    #[test]
    fn an_object_that_etcd_refuses_is_told_once() {
        assert_eq!(codes(&bundle(ETCD_LIMIT, 0), true), [Code::BundleTooLarge]);
        assert_eq!(codes(&bundle(ETCD_LIMIT, 0), false), [Code::BundleTooLarge]);
        assert_eq!(codes(&bundle(1000, 0), true), []);
    }

    #[test]
    fn objects_that_fit_alone_may_not_fit_into_one_plan() {
        let mut two = bundle(ETCD_LIMIT / 2, 0);
        two.manifests.extend(two.manifests.clone());
        assert_eq!(codes(&two, true), [Code::BundleTooLarge]);
        assert_eq!(codes(&two, false), []);
    }

    #[test]
    fn an_image_is_measured_as_olm_unpacks_it() {
        assert_eq!(codes(&bundle(0, UNPACK_LIMIT), false), []);
        assert_eq!(codes(&bundle(0, UNPACK_LIMIT + 1), false), [Code::UnpackTooLarge]);
    }
}
