//! The generated gRPC code must match `proto/registry.proto`. `UPDATE_GENERATED=1` rewrites it.

use std::path::Path;

use prost::Message as _;

#[test]
fn generated_code_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile([root.join("proto/registry.proto")], [root.join("proto")]).unwrap();
    let out = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .out_dir(out.path())
        .build_client(true)
        .disable_comments(["."])
        .codec_path("crate::codec::Codec")
        .compile_fds(descriptors.clone())
        .unwrap();
    let code = std::fs::read_to_string(out.path().join("api.rs")).unwrap();
    for (name, bytes) in [
        ("api.rs", code.into_bytes()),
        ("registry.bin", descriptors.encode_to_vec()),
    ] {
        let committed = root.join("src").join(name);
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(&committed, &bytes).unwrap();
        }
        let current = std::fs::read(&committed).unwrap_or_default();
        assert!(
            current == bytes,
            "{} is not what proto/registry.proto gives: run UPDATE_GENERATED=1 cargo test -p olmkit-serve generated_code",
            committed.display()
        );
    }
}
