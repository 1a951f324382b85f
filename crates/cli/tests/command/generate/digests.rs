//! Images in annotations are pinned and listed, as operator-sdk does.

use serde_json::json;

use super::support::{Folder, OPERATOR, said};

/// The manifests of the example with a sample that names an image.
fn with_sample() -> String {
    let sample = "---\napiVersion: example.com/v1\nkind: Example\nmetadata: {name: pinned}\n\
                  spec: {imageName: ghcr.io/example/database/postgres:15.6}\n";
    format!("{OPERATOR}{sample}")
}

#[test]
fn images_in_examples_are_pinned_and_listed() {
    let directory = Folder::new();
    let (operator, database) = ("a".repeat(64), "b".repeat(64));
    directory.write(
        "digests.yaml",
        &format!(
            "example.com/operator:v1: sha256:{operator}\nghcr.io/example/database/postgres:15.6: sha256:{database}\n"
        ),
    );
    let output = directory.generate(&["--image-digests", "digests.yaml"], &with_sample());
    assert!(output.status.success(), "{}", said(&output));
    let csv = directory.csv();
    let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap();
    let pinned = format!("ghcr.io/example/database/postgres@sha256:{database}");
    assert!(examples.contains(&pinned) && !examples.contains(":15.6"), "{examples}");
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([
            {"image": pinned, "name": format!("database/postgres-{database}-annotation")},
            {"image": format!("example.com/operator@sha256:{operator}"), "name": "manager"},
        ])
    );
}

#[test]
fn an_unknown_image_in_an_example_is_named() {
    let directory = Folder::new();
    directory.write(
        "digests.yaml",
        &format!("example.com/operator:v1: sha256:{}\n", "a".repeat(64)),
    );
    let input = with_sample().replace("ghcr.io", "registry.invalid");
    let output = directory.generate(&["--image-digests", "digests.yaml"], &input);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("registry.invalid/example/database/postgres:15.6")
            && said(&output).contains("annotation alm-examples contains this image"),
        "{}",
        said(&output)
    );
}

/// Without digests, operator-sdk lists such an image once and without a name (recorded case `related-images`). It keeps this
/// entry when it pins the images, and adds one for each name.
#[test]
fn an_image_with_two_names_is_listed_under_both_when_it_is_pinned() {
    let directory = Folder::new();
    let digest = "a".repeat(64);
    let digests = ["operator:v1", "database:v1"].map(|name| format!("example.com/{name}: sha256:{digest}\n"));
    directory.write("digests.yaml", &digests.concat());
    let variables = "env:\n        - {name: RELATED_IMAGE_ONE, value: 'example.com/database:v1'}\n        \
                     - {name: RELATED_IMAGE_TWO, value: 'example.com/database:v1'}\n        image: example.com/operator:v1\n";
    let input = OPERATOR.replacen("image: example.com/operator:v1\n", variables, 1);
    assert_ne!(input, OPERATOR);
    for (flags, wanted) in [
        (&[][..], "it is listed once, without a name"),
        (
            &["--image-digests", "digests.yaml"],
            "it is listed once under each name, and once without a name",
        ),
    ] {
        let output = directory.generate(flags, &input);
        assert!(said(&output).contains(wanted), "{}", said(&output));
    }
    let related = directory.csv()["spec"]["relatedImages"].clone();
    let names: Vec<&str> = related
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|each| each["name"].as_str())
        .collect();
    assert_eq!(names, ["", "manager", "one", "two"]);
}
