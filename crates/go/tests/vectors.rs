//! Compares every function with Go's output, which `dev/go-vectors` recorded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use olmkit_go::{base64, filepath, fmt, json, mail, netip, strconv, time, unicode, url};
use serde_json::{Value, json};

fn rows(section: &str) -> Vec<Vec<Value>> {
    let mut all: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let rows: Vec<Vec<Value>> = serde_json::from_value(all[section].take()).unwrap();
    assert!(!rows.is_empty(), "{section}");
    rows
}

/// Compares each row of a section with what `ours` gives for its first column, and shows every difference.
#[track_caller]
fn compare(section: &str, ours: impl Fn(&Value) -> Vec<Value>) {
    let mut wrong = Vec::new();
    for row in rows(section) {
        let found = ours(&row[0]);
        if found != row[1..] {
            wrong.push(format!("{}\n  Go   {:?}\n  ours {found:?}", row[0], &row[1..]));
        }
    }
    assert!(wrong.is_empty(), "{section}: {}\n{}", wrong.len(), wrong.join("\n"));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    (0..hexadecimal.len() / 2)
        .map(|at| u8::from_str_radix(&hexadecimal[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A result as its error message, or as a value.
fn either<T: Into<Value>, E: ToString>(result: Result<T, E>) -> Value {
    result.map_or_else(|error| error.to_string().into(), Into::into)
}

#[test]
fn quoting() {
    compare("quote", |input| {
        let input = text(input);
        vec![json!(strconv::quote(input)), json!(strconv::quote_to_ascii(input))]
    });
    compare("quote_bytes", |input| {
        vec![json!(strconv::quote_bytes(&bytes(text(input))))]
    });
    compare("quote_rune", |input| {
        vec![json!(strconv::quote_rune(text(input).chars().next().unwrap()))]
    });
}

#[test]
fn classes_of_characters() {
    compare("unicode", |input| {
        let c = u32::try_from(input.as_u64().unwrap()).unwrap();
        let c = char::from_u32(c).unwrap();
        let classes = [unicode::is_print(c), unicode::is_letter(c), unicode::is_digit(c)];
        classes.map(Value::from).to_vec()
    });
}

#[test]
fn floats() {
    compare("floats", |input| {
        let value = f64::from_bits(u64::from_str_radix(text(input), 16).unwrap());
        vec![
            json!(fmt::Operand::Float(value).v()),
            json!(strconv::format_g(value)),
            json!(strconv::format_g32(value)),
            if value.is_finite() {
                json!(json::float(value))
            } else {
                Value::Null
            },
        ]
    });
}

#[test]
fn integers() {
    compare("parse_int", |input| {
        let bases = [0, 10].into_iter();
        bases
            .flat_map(|base| {
                let input = text(input);
                [
                    either(strconv::parse_int(input, base)),
                    either(strconv::parse_uint(input, base)),
                ]
            })
            .collect()
    });
}

/// The untyped value that `encoding/json` makes: every number is a float.
fn operand(value: &Value) -> fmt::Operand<'_> {
    match value {
        Value::Number(number) => fmt::Operand::Float(number.as_f64().unwrap()),
        Value::Array(items) => fmt::Operand::Slice(items.iter().map(operand).collect()),
        Value::Object(entries) => {
            // Not in order, so that the order is the printer's.
            let entries = entries.iter().rev();
            fmt::Operand::Map(entries.map(|(key, item)| (key.as_str(), operand(item))).collect())
        }
        other => fmt::Operand::from(other),
    }
}

#[test]
fn values() {
    compare("fmt", |input| {
        let value: Value = serde_json::from_str(text(input)).unwrap();
        let operand = operand(&value);
        vec![json!(operand.v()), json!(operand.t())]
    });
    assert_eq!(
        fmt::v(&json!({"b": [1, 10_000_000, null], "a": 1.5})),
        "map[a:1.5 b:[1 10000000 <nil>]]"
    );
}

#[test]
fn json_texts() {
    for row in rows("json_text") {
        let (value, escaped, plain) = (&row[0], text(&row[1]), text(&row[2]));
        assert_eq!(json::marshal(value), escaped);
        assert_eq!(json::marshal_len(value), escaped.len(), "{escaped}");
        if let Value::String(value) = value {
            assert_eq!(json::string(value), escaped);
            let mut ours = String::new();
            json::write_string(&mut ours, value, json::Html::Plain);
            assert_eq!(ours, plain);
        }
    }
    compare("json_indent", |input| {
        let mut ours = String::new();
        json::write_indented(&mut ours, text(input), "  ");
        vec![json!(ours)]
    });
}

#[test]
fn json_syntax_errors() {
    compare("json_syntax", |input| {
        // `@3[` means `[[[`.
        let input = match text(input).strip_prefix('@') {
            None => text(input).to_owned(),
            Some(rest) => {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
                rest[digits..].repeat(rest[..digits].parse().unwrap())
            }
        };
        let whole = json::check(&input).err();
        vec![
            json!(whole.as_ref().map(|error| &error.message)),
            json!(whole.as_ref().map(|error| error.offset)),
            json!(json::check_first(&input).err().map(|error| error.to_string())),
        ]
    });
    compare("json_fields", |input| {
        let named = |field| json!(json::names_field(text(input), field));
        vec![named("schema"), named("skips")]
    });
}

#[test]
fn base64_texts() {
    compare("base64", |input| match base64::decode(text(input)) {
        Ok(decoded) => vec![json!(hexadecimal(&decoded)), Value::Null],
        Err(error) => vec![Value::Null, json!(error)],
    });
}

#[test]
fn urls() {
    let parts = |url: url::Url| {
        let user = url.user.map(|user| {
            let mut parts = vec![user.to_string(), user.username];
            parts.extend(user.password);
            parts
        });
        json!([
            url.scheme,
            url.opaque,
            user,
            url.host,
            url.path,
            url.raw_query,
            url.force_query,
            url.fragment
        ])
    };
    compare("url", |input| {
        let input = text(input);
        vec![
            either(url::parse(input).map(parts)),
            either(url::parse_request_uri(input).map(parts)),
        ]
    });
}

#[test]
fn addresses() {
    compare("netip", |input| match netip::parse_addr(text(input)) {
        Ok(netip::Addr { ip, zone }) => {
            let octets = match ip {
                std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
                std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            vec![json!(hexadecimal(&octets)), json!(zone), Value::Null]
        }
        Err(error) => vec![Value::Null, Value::Null, json!(error)],
    });
    compare("mail", |input| match mail::parse_address(text(input)) {
        Ok(address) => vec![json!(address.name), json!(address.address), Value::Null],
        Err(error) => vec![Value::Null, Value::Null, json!(error)],
    });
}

#[test]
fn times() {
    compare("time", |input| match time::parse_rfc3339(text(input)) {
        Ok(time) => vec![json!(time.unix), json!(time.nanosecond), Value::Null],
        Err(error) => vec![Value::Null, Value::Null, json!(error)],
    });
    compare("duration", |input| match time::parse_duration(text(input)) {
        Ok(duration) => vec![json!(duration), Value::Null],
        Err(error) => vec![Value::Null, json!(error)],
    });
}

#[test]
fn paths() {
    for row in rows("filepath") {
        let [a, b, clean, join, rel] = [0, 1, 2, 3, 4].map(|column| text(&row[column]));
        assert_eq!(filepath::clean(a), clean, "{a}");
        assert_eq!(filepath::join(a, b), join, "{a} {b}");
        assert_eq!(filepath::rel(&format!("/x/{a}"), &format!("/x/y/{b}")), rel, "{a} {b}");
    }
}
