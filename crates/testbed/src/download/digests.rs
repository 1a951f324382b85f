//! The digests of archives, as controller-tools publishes them in `envtest-releases.yaml`.

pub(super) const NEWEST: &str = "1.36.2";

/// The SHA-512 of an archive.
pub(super) fn find(version: &str, system: &str, processor: &str) -> Option<&'static str> {
    ARCHIVES
        .iter()
        .find(|archive| (archive.0, archive.1, archive.2) == (version, system, processor))
        .map(|archive| archive.3)
}

/// The versions, newest first.
pub(super) fn versions() -> Vec<&'static str> {
    let mut versions: Vec<&str> = ARCHIVES.iter().map(|archive| archive.0).collect();
    versions.dedup();
    versions
}

/// Version, system, processor and SHA-512, by version.
#[rustfmt::skip]
const ARCHIVES: &[(&str, &str, &str, &str)] = &[
    ("1.36.2", "darwin", "amd64", "b4fe9f973cd1992e3880f8b230ed32c0c243b83371591e3e3315f4404df2cdbef8ee94eeb9bb245b7e5feb987d5c4a76c43e0877654ab73f00d7bbc2b9984514"),
    ("1.36.2", "darwin", "arm64", "9278f9e5af556b2f1f2d139769c1f0d717c7b4426917fdebdba898bcb725a916e4910d6160886194ff9be9589ea7c5c32c2b8ae0754703874b7c8ba8ddfc41ce"),
    ("1.36.2", "linux", "amd64", "ea743186c8a799f5cf8faf16969f86189d003cb7d130e0ac4b58789f1e5748dcf30ebe91c837a10d5ac415383da3e10b9e64d65785c938c23e739781cfb76f08"),
    ("1.36.2", "linux", "arm64", "2d72ee985a8e262a3c57dc9f7f0fd891f6a8c7bf7ebaa2db6dc6d8eac8ae28181afe51c1f368b67756cdb40b10de9b205609e1726e5f27f7c6d824dd9c6649ac"),
    ("1.36.0", "darwin", "amd64", "2f73d7c2c1408c3334f978c2c7f8a64bc691277d1b482930ae516b425882464f8970b0e47010520cdd29f1e756adfab2721a53857a976a462c16edcef9604644"),
    ("1.36.0", "darwin", "arm64", "4b3542f707ffaa4bc0d5a07d25290323ff0ad1efd90560571705daf958db772fd8e78b5d6ae878df1840d8d39c1250ebfaf8518bfd02b10757ae445ec0cafe9e"),
    ("1.36.0", "linux", "amd64", "302d6a4c3b7d79b8a6168cd9fd5f18e718048211d25012d969d320e06b39672d17338bcd008c29adf98b41048a6f7d80c90ab0165b4b861497ef74c7bc6c1531"),
    ("1.36.0", "linux", "arm64", "16b416776b6f5e6a13be33b7e9f248cbffb71b40bc286436c93b83239b965d07b902ce0da75b721aea9356a764ca896154bc420618bc7fb9d1dc4a6b2fa49405"),
    ("1.35.0", "darwin", "amd64", "fccc583ba6d322c88a8c56f7876090a7ad63460046a4bcae414093b23ce68a75f172ca7484b7c7475b707657eca5108a8ad3fd85e1b4f70a6c99ca2f22dbd6b2"),
    ("1.35.0", "darwin", "arm64", "bb5d0bb3975956331b0aa0c039955b4c4dc6c5c288e5af369364c7d2fbeac11a025227dabb127569080b259dd29b697cc77fa77abd27ae26721ddb23e8ee0613"),
    ("1.35.0", "linux", "amd64", "130369c16f076e724d089189afaede960316f5f5dea6cf57be7a4fc6f09c77342893192509790e4056e116e232dff832ed863f5bd55dcb55d38f3ab834828a11"),
    ("1.35.0", "linux", "arm64", "e53e2b88398f5b9503e3f074d82a2dcb090c708b34940848607ce658138a5d4a25962e042ab683ccc026a8a6c90c0be7f658e42dde0887369d73c3b68e2fc86c"),
    ("1.34.1", "darwin", "amd64", "d9e0464dc1708c36ab41147b5e364c8b8e201eafc14c299dcbe58ebeaa82c651b8e834647167a951ded8c6d08c616aadbae1673a54743f9c8fa15a278c78c0c0"),
    ("1.34.1", "darwin", "arm64", "43d7c10b74100d20044df7c73be03e26f8243a9cb7c1d3035e581ee7bb0c7ffcaf759b9e182186b5bb2f47d1608835414ca443181a02d9ecb6c9cf04b43e3809"),
    ("1.34.1", "linux", "amd64", "c5e7c237ae18a8c65d0df1214b864ecd19aa9ff4f1383dbd477c202546d778c0f74efe15750ec38f57d8de26ba17cd62f404446cdd3c975399a5d4589de35cdd"),
    ("1.34.1", "linux", "arm64", "bf13d2456183e66d084e28e1c9eed6a408fb77a06d8d1fd0461a7d9bc0c90b63d29ea67870b28f80d1f992acb026007d6f43987753c859c81d6a78bc1ca2c903"),
    ("1.33.0", "darwin", "amd64", "71a387a4cac32b17e22046df594090b6503fc074be8caae78bc80ef83949e292a1290eefe725acd41ce4bec730f7442006f2a9eb19d8e2d4d9df2feb67da04ba"),
    ("1.33.0", "darwin", "arm64", "623dc02432905e58738c5611b8b0808437762755003dbaee266ded27dfe9a37d5a75ed6578ac4fbb261c7cd19c0199a7428de77b40b2f881912a4468c4d98d61"),
    ("1.33.0", "linux", "amd64", "2cb7f5468ed7cea1492f971b715bcc27069e824cf7d5927b7f127f1e8c75cf086eea050543cdb5f79faee0a2bf775f160adf27443aa7ee845d962d04e9d43ac9"),
    ("1.33.0", "linux", "arm64", "366ba32b2154c16e0ce952ed69731feefed187c88030f76a14bda5921a498d0aa25528629fc41c225cf78c91fd4a424a472e38efec91e8fcbd254fac0e150a54"),
];
