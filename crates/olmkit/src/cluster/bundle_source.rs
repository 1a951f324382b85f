//! stub
use super::{Error, BundleFacts};
/// x
#[derive(Clone, Debug, Default)]
pub struct Access { /// x
 pub plain_http: bool, /// x
 pub skip_tls_verify: bool }
/// x
/// # Errors
pub async fn load(_source: &str, _access: &Access) -> Result<BundleFacts, Error> { Err(Error::Bundle("stub".into())) }
