//! Explains why operator-controller and catalogd cannot pull an image. The controllers pull images themselves. Nodes do
//! not.

/// The likely reason and the fix for an error of their image library.
pub(super) fn explain(message: &str) -> (&'static str, String) {
    let text = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let both = "operator-controller and catalogd";
    if has(&[
        "x509",
        "certificate signed by unknown authority",
        "failed to verify certificate",
    ]) {
        return (
            "the registry's certificate is from an authority that OLM v1 does not trust",
            format!(
                "mount the authority's certificate into the Deployments of {both}, in the directory of --pull-cas-dir (any file name that ends in .crt)"
            ),
        );
    }
    if has(&["http response to https"]) {
        return (
            "the registry speaks plain HTTP",
            format!(
                "use a registry with TLS, or mount a registries.conf below /etc/containers of {both} that marks it as insecure"
            ),
        );
    }
    if has(&[
        "unauthorized",
        "authentication required",
        "denied",
        "forbidden",
        "no basic auth",
    ]) {
        return (
            "the registry requires credentials; OLM v1 uses none from a ClusterExtension or a namespace",
            format!(
                "give {both} a Secret of type dockerconfigjson: as --global-pull-secret=NAMESPACE/NAME of both, or as an image pull secret of their ServiceAccounts in OLM's namespace"
            ),
        );
    }
    if has(&[
        "manifest unknown",
        "name unknown",
        "not found",
        "repository does not exist",
    ]) {
        return (
            "the registry has no such image",
            "push it, or correct the reference in the catalog; by digest the image must have exactly that digest"
                .into(),
        );
    }
    if has(&[
        "no such host",
        "connection refused",
        "i/o timeout",
        "timed out",
        "network is unreachable",
        "no route to host",
        "server misbehaving",
    ]) {
        return (
            "no registry answers at that name from inside the cluster, where localhost is the pod itself",
            format!(
                "use a name that reaches the registry from the pods of {both}; run bundle takes it with --pull-from"
            ),
        );
    }
    (
        "",
        format!("{both} pull images themselves: check that the image can be pulled from their pods"),
    )
}

/// Returns true if a message of a ClusterExtension is about pulling an image.
pub(super) fn is_about(message: &str) -> bool {
    const MARKS: &[&str] = &[
        "error creating image source",
        "error getting manifest",
        "error copying image",
        "error reading image",
        "error parsing image reference",
        "error loading policy context",
        "pinging container registry",
        "reading manifest",
    ];
    MARKS.iter().any(|mark| message.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_a_registry_has_its_way_out() {
        for (message, way_out) in [
            (
                "pinging container registry r.test: Get \"https://r.test/v2/\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                "--pull-cas-dir",
            ),
            (
                "reading manifest v1 in r.test/b: unauthorized: authentication required",
                "--global-pull-secret",
            ),
            ("reading manifest v1 in r.test/b: manifest unknown", "push it"),
            (
                "pinging container registry localhost:5000: dial tcp [::1]:5000: connect: connection refused",
                "--pull-from",
            ),
            (
                "Get \"https://r.test/v2/\": http: server gave HTTP response to HTTPS client",
                "registries.conf",
            ),
            ("something else", "pull images themselves"),
        ] {
            let (_, remedy) = explain(message);
            assert!(remedy.contains(way_out), "{message}: {remedy}");
        }
        assert!(is_about("error creating image source: x"));
        assert!(!is_about("no bundles found for package \"a\""));
    }
}
