//! Images that other tools wrote: indexes with variants, documents of two kinds, layers with zstd.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{Desk, bundle};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes a blob into a layout, and returns its descriptor.
fn blob(desk: &Desk, layout: &str, kind: &str, bytes: &[u8]) -> Value {
    let digest = olmkit_oci::sha256(bytes).to_string();
    let directory = desk.path(layout).join("blobs/sha256");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(digest.trim_start_matches("sha256:")), bytes).unwrap();
    json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
}

/// Writes `index.json` with one entry.
fn finish(desk: &Desk, layout: &str, entry: &Value) {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    fs::write(desk.path(layout).join("index.json"), index.to_string()).unwrap();
    fs::write(
        desk.path(layout).join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )
    .unwrap();
}

/// The descriptor of a layout's only image.
fn entry(desk: &Desk, layout: &str) -> Value {
    let index: Value = serde_json::from_slice(&fs::read(desk.path(layout).join("index.json")).unwrap()).unwrap();
    let found = &index["manifests"][0];
    json!({"mediaType": found["mediaType"], "digest": found["digest"], "size": found["size"]})
}

/// A layout, and an archive with the same files.
fn archive(desk: &Desk, layout: &str) -> String {
    let tar = format!("{layout}.tar");
    let mut command = Command::new("tar");
    command
        .args(["-C", layout, "-cf", &tar, "."])
        .current_dir(desk.path(""));
    assert!(command.status().unwrap().success());
    format!("oci-archive:{tar}")
}

/// An index of an image for newer processors only, and after it one for all.
#[test]
fn commands_take_the_plain_entry_before_a_higher_variant() {
    let desk = Desk::new();
    fs::write(desk.path("f"), "x").unwrap();
    desk.succeed(&format!("image build bundle {} -t a:v1 -o oci:plain", bundle()));
    desk.succeed("image build files --add f:/newer -t b:v1 -o oci:newer --user 9");
    for (name, architecture, high) in [("amd", "amd64", "v3"), ("arm", "arm64", "v9")] {
        let mut entries = Vec::new();
        for (image, variant) in [("newer", Some(high)), ("plain", None)] {
            let mut entry = entry(&desk, image);
            entry["platform"] = json!({"os": "linux", "architecture": architecture});
            if let Some(variant) = variant {
                entry["platform"]["variant"] = variant.into();
            }
            for file in fs::read_dir(desk.path(image).join("blobs/sha256")).unwrap() {
                blob(&desk, name, "", &fs::read(file.unwrap().path()).unwrap());
            }
            entries.push(entry);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string();
        let index = blob(&desk, name, INDEX, index.as_bytes());
        finish(&desk, name, &index);
        let digest = |entry: &Value| entry["digest"].clone();
        let (newer, plain) = (digest(&entries[0]), digest(&entries[1]));

        let places = [format!("oci:{name}"), archive(&desk, name)];
        for place in &places {
            for (platform, expected) in [
                (format!("linux/{architecture}"), &plain),
                (format!("linux/{architecture}/{high}"), &newer),
            ] {
                let shown = desk.inspect(&format!("{place} --platform {platform}"));
                assert_eq!(&shown["imageDigest"], expected, "inspect {place} {platform}");
                desk.succeed(&format!(
                    "image build files --base {place} --add f:/g -t c:v1 --platform {platform} -o oci:out"
                ));
                let built = desk.inspect(&format!("oci:out --platform {platform}"));
                let user = &built["config"]["config"]["User"];
                // The bundle's image has no user, so the build sets one.
                let is_newer = *user == "9";
                assert_eq!(is_newer, expected == &newer, "build {place} {platform}: {built}");
                fs::remove_dir_all(desk.path("out")).unwrap();
            }
        }
        // `catalog render` has no flag for the platform: it takes this machine's architecture.
        let own = if cfg!(target_arch = "aarch64") { "arm" } else { "amd" };
        if own == name {
            for place in &places {
                let rendered: Value = serde_json::from_str(&desk.succeed(&format!("catalog render {place}"))).unwrap();
                assert_eq!(rendered["schema"], "olm.bundle", "{place}");
            }
        }
    }
}

/// A document that is manifest and index at once (CVE-2021-41190), in layouts and archives.
#[test]
fn documents_of_two_kinds_are_rejected_in_layouts_and_archives() {
    let desk = Desk::new();
    desk.succeed(&format!("image build bundle {} -t a:v1 -o oci:good", bundle()));
    let good = entry(&desk, "good");
    let digest = good["digest"].as_str().unwrap().trim_start_matches("sha256:");
    let text = fs::read(desk.path("good/blobs/sha256").join(digest)).unwrap();
    let mut both: Value = serde_json::from_slice(&text).unwrap();
    both["manifests"] = json!([good]);
    let mut untyped = both.clone();
    untyped.as_object_mut().unwrap().remove("mediaType");
    let mut cased: Value = serde_json::from_slice(&text).unwrap();
    cased["Manifests"] = json!([good]);
    for (at, (document, kind)) in [
        (&both, MANIFEST),
        (&both, INDEX),
        (&untyped, MANIFEST),
        (&untyped, INDEX),
        (&cased, MANIFEST),
    ]
    .into_iter()
    .enumerate()
    {
        let layout = format!("bad{at}");
        for file in fs::read_dir(desk.path("good/blobs/sha256")).unwrap() {
            blob(&desk, &layout, "", &fs::read(file.unwrap().path()).unwrap());
        }
        let described = blob(&desk, &layout, kind, document.to_string().as_bytes());
        finish(&desk, &layout, &described);
        for place in [format!("oci:{layout}"), archive(&desk, &layout)] {
            for line in [
                format!("image inspect {place}"),
                format!("image copy {place} oci:copy"),
                format!("catalog render {place}"),
            ] {
                let error = desk.fail(&line);
                assert!(error.contains("is refused: it "), "{line} {kind}: {error}");
            }
            assert!(!desk.path("copy/index.json").exists(), "{place}");
        }
    }
}

/// A zstd layer is copied without being unpacked and compressed again.
#[test]
fn zstd_layers_are_copied_as_they_are() {
    let desk = Desk::new();
    // An empty archive in one raw block: magic, a header with a size of two bytes (less 256), the block's header.
    let archive_bytes = vec![0_u8; 1024];
    let mut layer = vec![0x28, 0xb5, 0x2f, 0xfd, 0x60];
    layer.extend(u16::to_le_bytes(1024 - 256));
    layer.extend(&u32::to_le_bytes(1024 << 3 | 1)[..3]);
    layer.extend(&archive_bytes);
    let rootfs = json!({"type": "layers", "diff_ids": [olmkit_oci::sha256(&archive_bytes).to_string()]});
    let config = json!({"os": "linux", "architecture": "amd64", "rootfs": rootfs}).to_string();
    let config = blob(
        &desk,
        "from",
        "application/vnd.oci.image.config.v1+json",
        config.as_bytes(),
    );
    let layer_entry = blob(&desk, "from", "application/vnd.oci.image.layer.v1.tar+zstd", &layer);
    let manifest =
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer_entry]}).to_string();
    let described = blob(&desk, "from", MANIFEST, manifest.as_bytes());
    finish(&desk, "from", &described);

    let file = |layout: &str, entry: &Value| {
        let digest = entry["digest"].as_str().unwrap().trim_start_matches("sha256:");
        fs::read(desk.path(layout).join("blobs/sha256").join(digest)).unwrap()
    };
    desk.succeed("image copy oci:from oci:to");
    desk.succeed("image copy oci:to oci-archive:to.tar");
    desk.succeed("image copy oci-archive:to.tar oci:again");
    for layout in ["to", "again"] {
        assert_eq!(entry(&desk, layout), described, "{layout}");
        assert_eq!(file(layout, &described), manifest.as_bytes(), "{layout}");
        assert_eq!(file(layout, &layer_entry), layer, "{layout}");
    }
    assert_eq!(desk.succeed("image diff oci:from oci:again"), "");
}
