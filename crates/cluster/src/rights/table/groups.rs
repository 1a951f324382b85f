//! API groups.

pub const CORE: &str = "";
pub const APPS: &str = "apps";
pub const BATCH: &str = "batch";
pub const RBAC: &str = "rbac.authorization.k8s.io";
pub const CRDS: &str = "apiextensions.k8s.io";
pub const AGGREGATION: &str = "apiregistration.k8s.io";
pub const ADMISSION: &str = "admissionregistration.k8s.io";
pub const NETWORK: &str = "networking.k8s.io";
pub const SCHEDULING: &str = "scheduling.k8s.io";
pub const OLM: &str = "operators.coreos.com";
pub const OLM_V1: &str = "olm.operatorframework.io";
