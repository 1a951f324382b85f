//! Rules in CEL that the schema cannot express, or must not.
//!
//! Bounds that a later version narrows are CEL rules, not `minimum` and `maximum`. The API server does not apply a rule to a field that
//! an update leaves unchanged, so existing objects stay updatable. OLM checks existing objects against the new schema before it
//! upgrades an operator, and one object out of bounds would block the upgrade. It does not evaluate CEL.
use kube::core::Rule;

/// More servers are a mistake: clients connect to each of them.
pub fn size() -> Rule {
    Rule::new("self <= 1000").message("size must be at most 1000")
}

/// Memcached counts its own files as connections: 8 and 4 for each of its 4 threads.
pub fn max_connections() -> Rule {
    Rule::new("self >= 32").message("maxConnections must be at least 32: memcached uses 24 itself")
}

/// With more threads than the default.
pub fn threads() -> Rule {
    Rule::new("!has(self.threads) || self.maxConnections >= 16 + 4 * self.threads")
        .message("maxConnections must be at least 16 + 4 * threads: memcached uses 8 + 4 * threads itself")
        .field_path(".maxConnections")
}

/// Memcached does not start with larger items.
pub fn max_item_size() -> Rule {
    Rule::new("!has(self.maxItemSizeMegabytes) || 2 * self.maxItemSizeMegabytes <= self.memoryLimitMegabytes")
        .message("maxItemSizeMegabytes must be at most half of memoryLimitMegabytes")
        .field_path(".maxItemSizeMegabytes")
}

/// A container that may use less memory than memcached needs is killed as soon as the cache fills. The comparison is one of numbers,
/// because the API server cannot bound the cost of putting a text together. An update may keep a limit that was valid earlier. The field
/// warmCache is newer than the rule, so no such object has it.
pub fn memory() -> Rule {
    let has = |object: &str| {
        format!("has({object}.resources) && has({object}.resources.limits) && 'memory' in {object}.resources.limits")
    };
    let (limit, old) = ("self.resources.limits['memory']", "oldSelf.value()");
    let is_warm = "has(self.warmCache) && self.warmCache == 'WarmRestart'";
    let rule = format!(
        "!({}) || quantity(string({limit})).asApproximateFloat() >= \
         double(self.memoryLimitMegabytes + ({is_warm} ? 72 : 32)) * 1048576.0 || \
         (oldSelf.hasValue() && !has(self.warmCache) && {old}.memoryLimitMegabytes == self.memoryLimitMegabytes && {} && \
         {old}.resources.limits['memory'] == {limit})",
        has("self"),
        has(old),
    );
    Rule::new(rule)
        .optional_old_self(true)
        .message(
            "resources.limits.memory must be at least memoryLimitMegabytes + 32 (in Mi), or + 72 with WarmRestart: memcached needs memory \
             besides its items",
        )
        .field_path(".resources")
}

/// With WarmRestart, the operator sets the file. With ResizeInPlace, it sends commands to the servers, without TLS and authentication.
/// Memcached does not change the memory of a file or of large pages.
pub fn warm_cache() -> Rule {
    Rule::new(
        "!has(self.warmCache) || !(self.warmCache == 'ResizeInPlace' && has(self.tls)) && (!has(self.extraArgs) || \
         self.extraArgs.all(arg, !arg.matches('^-[A-Za-z]*e') && (self.warmCache != 'ResizeInPlace' || \
         !arg.matches('^-[A-Za-z]*[BLSYZ]') && !arg.matches('^--(a|e|pr)'))))",
    )
    .message("warmCache must not be combined with -e (file), nor ResizeInPlace with tls, -S or -Y (authentication), -Z (TLS), -B (protocol) or -L (large pages)")
    .field_path(".warmCache")
}

/// The StatefulSet controller adds up to eleven characters to the name, and uses the result as the value of a label.
pub fn stateful_name() -> Rule {
    Rule::new("!has(self.spec.workload) || self.spec.workload != 'StatefulSet' || size(self.metadata.name) <= 52")
        .message("metadata.name must have at most 52 characters if workload is StatefulSet")
}

/// Flags that the operator sets, and flags with which memcached does not serve. Memcached accepts abbreviations of long flags and several
/// letters after one dash.
pub fn extra_args() -> Rule {
    Rule::new(
        "self.all(arg, !arg.matches('^-[A-Za-z]*[mcptIlsdhVi]') && !arg.matches('^--(me|co|po|t|max-i|li|unix-s|da|h|vers)'))",
    )
    .message(
        "extraArgs must not contain flags that the operator sets (-m, -c, -p, -t, -I) or that stop the service (-l, -s, -d, -h, -V, -i); \
         write the value of a flag as a separate entry",
    )
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt as _;
    use serde_json::json;

    /// OLM checks existing objects against the schema without the rules: the schema must accept what version 0.0.1 accepted.
    #[test]
    fn bounds_are_not_narrower_than_in_0_0_1() {
        let definition = serde_json::to_value(crate::api::v1alpha1::Memcached::crd()).unwrap();
        let spec = definition.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties");
        let bounds = |field: &str| {
            let field = &spec.unwrap()[field];
            json!([field["minimum"], field["maximum"]])
        };
        let bounds: Vec<_> = ["size", "containerPort", "memoryLimitMegabytes", "maxConnections"]
            .map(bounds)
            .into();
        assert_eq!(
            json!(bounds).to_string(),
            "[[0.0,null],[1.0,65535.0],[1.0,null],[1.0,null]]"
        );
    }
}
