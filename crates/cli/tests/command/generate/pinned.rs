//! Images are replaced by digests from a real registry.

use serde_json::json;

use super::support::{Folder, OPERATOR, said};
use test_support::registry::{Registry, Setup};

#[test]
fn images_are_pinned_from_their_registry() {
    let Some(registry) = Registry::start(&Setup::default()) else {
        return;
    };
    let directory = Folder::new();
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    // Any image will do: this one is of the bundle.
    let image = format!("{}/team/operator:v1", registry.host());
    let pushed = directory.olmkit(&["image", "build", "bundle", "-t", &image, "-o", "push", "bundle"], "");
    assert!(pushed.status.success(), "{}", said(&pushed));

    let input = OPERATOR.replace("example.com/operator:v1", &image);
    let output = directory.generate(&["--strict", "--use-image-digests"], &input);
    assert!(output.status.success(), "{}", said(&output));
    let csv = directory.csv();
    let pinned = csv["spec"]["relatedImages"][0]["image"].as_str().unwrap();
    let (name, digest) = pinned.split_once("@sha256:").unwrap();
    assert_eq!(name, image.trim_end_matches(":v1"));
    assert_eq!(digest.len(), 64);
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([{"image": pinned, "name": "manager"}])
    );
    let pod = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], pinned);
    let first = directory.files();
    assert!(
        directory
            .generate(&["--strict", "--use-image-digests"], &input)
            .status
            .success()
    );
    assert_eq!(directory.files(), first, "the same bytes again");

    // Images in examples are listed, as `--image-digests` does. A reference in an example needs a host with a dot.
    let with_dot = image.replace("localhost", "127.0.0.1");
    let sample = format!(
        "---\napiVersion: example.com/v1\nkind: Example\nmetadata: {{name: pinned}}\nspec: {{imageName: '{with_dot}'}}\n"
    );
    let output = directory.generate(&["--use-image-digests"], &format!("{input}{sample}"));
    assert!(output.status.success(), "{}", said(&output));
    let csv = directory.csv();
    let with_dot = pinned.replace("localhost", "127.0.0.1");
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([
            {"image": pinned, "name": "manager"},
            {"image": with_dot, "name": format!("operator-{digest}-annotation")},
        ])
    );
    let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap();
    assert!(examples.contains(&with_dot), "{examples}");
    let output = directory.generate(&["--strict", "--use-image-digests"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(directory.files(), first);

    let unknown = OPERATOR.replace("example.com/operator:v1", &format!("{}/team/other:v1", registry.host()));
    let output = directory.generate(&["--strict", "--use-image-digests"], &unknown);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("/team/other:v1: its digest is unknown"),
        "{}",
        said(&output)
    );
    assert!(said(&output).contains("--image-digests"), "{}", said(&output));
    assert_eq!(directory.files(), first, "the old bundle is untouched");
}
