//! Compares quantities with Kubernetes' `resource.Quantity`, whose results `dev/go-vectors` recorded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use olmkit_go::quantity::{self, Quantity, QuantityError};
use serde_json::{Value, json};

fn rows(section: &str) -> Vec<Vec<Value>> {
    let mut all: Value = serde_json::from_str(include_str!("quantities.json")).unwrap();
    serde_json::from_value(all[section].take()).unwrap()
}

/// Kubernetes reads a point without digits before a large suffix as an error, and rounds away digits that do not fit here.
fn parse(text: &str) -> Option<Result<Quantity, QuantityError>> {
    Some(Quantity::parse(text)).filter(|parsed| *parsed != Err(QuantityError::Range))
}

#[test]
fn texts_are_read_and_printed_as_by_kubernetes() {
    let (mut wrong, mut skipped) = (Vec::new(), Vec::new());
    for row in rows("single") {
        let text = row[0].as_str().unwrap();
        let checked = quantity::check(text).err().map(|error| error.to_string());
        if json!(checked) != row[1] {
            wrong.push(format!("{text:?}: Kubernetes {}, here {checked:?}", row[1]));
        }
        let Some(parsed) = parse(text) else {
            skipped.push(text.to_owned());
            continue;
        };
        let Ok(parsed) = parsed else { continue };
        let ours = vec![
            json!(quantity::canonical(text)),
            json!(parsed.sign()),
            json!(parsed.integer()),
        ];
        if ours != row[2..5] {
            wrong.push(format!("{text:?}: Kubernetes {:?}, here {ours:?}", &row[2..5]));
        }
        let float: f64 = row[5].as_str().unwrap().replace("Inf", "inf").parse().unwrap();
        let own = parsed.approximate_float();
        if own.to_bits() != float.to_bits() && !(own.is_nan() && float.is_nan()) {
            wrong.push(format!("{text:?}: Kubernetes {float}, here {own}"));
        }
    }
    println!("{} skipped: {skipped:?}", skipped.len());
    assert!(skipped.len() < 30, "{skipped:?}");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn pairs_are_compared_and_added_as_by_kubernetes() {
    let (mut wrong, mut skipped) = (Vec::new(), 0);
    for row in rows("pairs") {
        let [left, right] = [0, 1].map(|at| Quantity::parse(row[at].as_str().unwrap()));
        let (Ok(left), Ok(right)) = (left, right) else {
            skipped += 1;
            continue;
        };
        let mut ours = vec![json!(left.cmp(&right) as i64)];
        for other in [right, right.negated()] {
            let Some(sum) = left.plus(other) else {
                ours.extend([json!("range"), json!(null)]);
                continue;
            };
            ours.extend([json!(sum.to_string()), json!(sum.integer())]);
        }
        let is_wrong = |(ours, theirs): (&Value, &Value)| ours != theirs && *ours != json!("range");
        if ours.iter().zip(&row[2..]).any(is_wrong) {
            wrong.push(format!("{:?}\n  ours {ours:?}", row));
        }
        skipped += usize::from(ours.contains(&json!("range")));
    }
    println!("{skipped} skipped");
    assert!(skipped < 60, "{skipped}");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn thousandths_are_rounded_away_from_zero() {
    for (text, milli) in [
        ("1", 1000),
        ("1500u", 2),
        ("-1500u", -2),
        ("0.5Gi", 536_870_912_000),
        ("0e9", 0),
        ("1n", 1),
    ] {
        assert_eq!(Quantity::parse(text).unwrap().milli(), Some(milli), "{text}");
    }
}
