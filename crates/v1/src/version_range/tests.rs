use super::*;

/// Ranges, versions inside and versions outside, as Masterminds has them.
const RANGES: [(&str, &[&str], &[&str]); 24] = [
    ("1.2.3", &["1.2.3", "1.2.3+build"], &["1.2.4", "1.2.3-rc1"]),
    ("v1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
    ("1", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.0"]),
    ("*", &["0.0.0", "9.9.9"], &["1.0.0-rc1"]),
    (">=1.2, <2", &["1.2.0", "1.9.9"], &["2.0.0", "1.1.9", "1.3.0-rc1"]),
    (">=1.2 <2 || 3.0.0", &["1.5.0", "3.0.0"], &["2.5.0", "3.0.1"]),
    (
        ">=1.2.0-0 <2",
        &["1.2.0-rc1", "1.3.0-a", "2.0.0-rc1+b.0"],
        &["2.0.0", "1.1.0"],
    ),
    ("1.2 - 1.4.5", &["1.2.0", "1.4.5"], &["1.1.9", "1.4.6"]),
    ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
    ("~1", &["1.0.0", "1.9.0"], &["2.0.0"]),
    ("~>2.0", &["2.0.1"], &["2.1.0"]),
    ("~0.0.0", &["0.0.0", "7.1.0"], &["1.0.0-rc1"]),
    ("^1.2.3", &["1.2.3", "1.9.0"], &["2.0.0", "1.2.2"]),
    ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "1.2.3"]),
    ("^0.0.3", &["0.0.3"], &["0.0.4", "0.1.3"]),
    ("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]),
    ("^0", &["0.0.0", "0.9.9"], &["1.0.0"]),
    ("!=1.2.x", &["1.3.0", "2.2.0"], &["1.2.0", "1.2.7"]),
    ("!=1", &["2.0.0"], &["1.5.0"]),
    (">1.2", &["1.3.0", "2.0.0"], &["1.2.9"]),
    (">11", &["12.0.0"], &["11.1.0"]),
    ("=>1.0.0 =<1.2", &["1.0.0", "1.2.9"], &["1.3.0"]),
    ("<=1", &["1.9.9", "0.1.0"], &["2.0.0"]),
    ("<1.0.0-rc2", &["1.0.0-rc1", "0.9.0"], &["1.0.0", "1.0.0-rc2"]),
];

#[test]
fn ranges_contain_what_masterminds_says() {
    for (text, inside, outside) in RANGES {
        let range = VersionRange::parse(text).unwrap();
        let contains = |version: &&&str| range.contains(&Version::parse(version).unwrap());
        assert_eq!(
            inside.iter().filter(contains).count(),
            inside.len(),
            "{text}: {inside:?}"
        );
        assert_eq!(outside.iter().filter(contains).count(), 0, "{text}: {outside:?}");
    }
}

#[test]
fn faults_read_as_masterminds_words_them() {
    for (text, error) in [
        ("", r#"improper constraint: """#),
        (">=1.0.0 ||", r#"improper constraint: """#),
        (">> 1", r#"improper constraint: ">> 1""#),
        ("1x", "constraint parser error"),
        ("99999999999999999999", "constraint parser error"),
        ("1.0.0-01", "constraint parser error"),
    ] {
        assert_eq!(VersionRange::parse(text).unwrap_err().to_string(), error, "{text:?}");
    }
    assert_eq!(
        VersionRange::parse(&" ".repeat(513)).unwrap_err(),
        VersionRangeError::TooLong
    );
    assert_eq!(
        VersionRange::parse(&["1"; 33].join("||")).unwrap_err(),
        VersionRangeError::TooManyAlternatives
    );
}

#[test]
fn the_api_server_admits_less() {
    for (text, admitted) in [
        (">=1.2, <2", true),
        ("1.x || ~3.1", true),
        ("1.0 - 2.0", false),
        ("01.2.3", false),
        (
            ">=1.0.0 !=1.1.1 !=1.1.2 !=1.1.3 !=1.1.4 !=1.1.5 !=1.1.6 !=1.1.777",
            false,
        ),
    ] {
        assert_eq!(VersionRange::parse(text).unwrap().is_admitted(), admitted, "{text}");
    }
}
