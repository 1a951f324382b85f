//! CEL rules: that olmkit compiles and evaluates them as the API server does.

use olmkit::crd::instance;
use olmkit::crd::validation::{ApiVersion, validate_schemas};
use serde_json::{Value, json};

use super::server::{GROUP, Server};

/// Result of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The definition is rejected.
    Refused,
    /// The object is accepted.
    True,
    /// The object is rejected.
    False,
    /// The object is rejected, because the evaluation fails.
    Fails,
}

use Ends::{Fails, False, Refused, True};

const RULES: [(&str, Ends); 82] = [
    ("self.name == 'web'", True),
    ("self.name != 'web'", False),
    ("self.name == 1", Refused),
    ("self.name == null", Refused),
    ("self.name", Refused),
    ("self.any", Refused),
    ("self.unknown == 1", Refused),
    ("other == 1", Refused),
    ("self.name.reverse() == 'bew'", Refused),
    ("math.greatest(1, 2) == 2", Refused),
    ("authorizer.path('/').check('get').allowed()", Refused),
    ("[1, 'a'].size() == 2", Refused),
    ("self.ratio + 1 > 0.0", Refused),
    ("self.main == self", Refused),
    ("self['name'] == 'web'", Refused),
    ("self.name.all(c, true)", Refused),
    ("self.size", Refused),
    ("self.name = 'web'", Refused),
    ("(self.name == 'web'", Refused),
    ("duration('soon') > duration('1s')", Refused),
    ("quantity('1').sign() == 1", Refused),
    ("self.metadata.name == 'x'", Refused),
    ("self.free.x == 1", Refused),
    ("self.absent == 'x'", Fails),
    ("self.size / 0 == 1", Fails),
    ("self.list[5] == 'a'", Fails),
    ("self.any + 1 == 2", Fails),
    ("self.size + 9223372036854775807 > 0", Fails),
    ("optional.none().value() == 1", Fails),
    ("self.labels.nowhere == 'x'", Fails),
    ("self.name.substring(10) == ''", Fails),
    ("self.list.exists(x, self.size / 0 == 1)", Fails),
    ("false && self.size / 0 == 1", False),
    ("self.size / 0 == 1 || true", True),
    ("self.list.exists(x, x == 'a' || self.size / 0 == 1)", True),
    ("has(self.absent) || !has(self.maybe)", True),
    ("has(self.free) && has(self.main.port)", True),
    ("self.?absent.orValue('none') == 'none'", True),
    ("self.?main.?port.orValue(0) == 80", True),
    ("self.labels[?'app'].orValue('') == 'web'", True),
    ("self.?absent.hasValue()", False),
    ("type(self.any) == string && self.any.endsWith('%')", True),
    ("self.any == '80%' && self.any != 80", True),
    ("self.set == ['b', 'a']", True),
    ("self.list == ['b', 'a']", False),
    ("self.set + ['a', 'c'] == ['a', 'b', 'c']", True),
    ("self.byName == self.byName && self.byName.size() == 2", True),
    ("self.__namespace__ == 'x' && self.a__dash__b == 1", True),
    (
        "self.when < timestamp('2025-01-01T00:00:00Z') && self.when.getDayOfWeek() == 4",
        True,
    ),
    ("self.day.getMonth() == 1", True),
    ("self.wait == duration('90s')", True),
    ("self.data == b'hi'", True),
    ("self.ratio > 1 && self.size <= 3.0", True),
    ("self.list.map(x, x + x) == ['aa', 'bb']", True),
    ("self.list.transformList(i, x, i) == [0, 1]", True),
    ("self.list.all(i, x, i < 1)", False),
    ("self.labels.exists(k, k == 'tier')", True),
    ("self.list.isSorted() && self.list.max() == 'b'", True),
    ("[3, 1, 2].sum() == 6", True),
    (
        "sets.contains(self.list, ['a']) && sets.intersects(self.list, ['c'])",
        False,
    ),
    ("self.name.upperAscii() == 'WEB' && self.name.indexOf('b') == 2", True),
    ("'a,b'.split(',') == self.list && self.list.join('-') == 'a-b'", True),
    ("'%s is %d'.format([self.name, self.size]) == 'web is 3'", True),
    ("'%.2f %x %b'.format([self.ratio, 255, 5]) == '1.50 ff 101'", True),
    ("'%s'.format([self.list]) == '[\"a\", \"b\"]'", True),
    ("strings.quote('a\"b') == '\"a\\\\\"b\"'", True),
    (
        "self.name.matches('^[a-z]{2,4}$') && !'[0-9]{1-4}'.matches('^x{1-4}$')",
        True,
    ),
    ("'٣'.matches('^\\\\d$')", False),
    ("'a1b22'.findAll('[0-9]+') == ['1', '22']", True),
    (
        "isURL('https://a/b') && url('https://a:80/b?c=d').getPort() == '80'",
        True,
    ),
    ("url('https://a:80/b?c=d').getQuery() == {'c': ['d']}", True),
    (
        "isIP('::1') && !isIP('::ffff:1.2.3.4') && ip('10.0.0.1').isGlobalUnicast()",
        True,
    ),
    (
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsCIDR('0.0.0.0/0')",
        True,
    ),
    (
        "quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1k').asInteger() == 1000",
        True,
    ),
    ("quantity('1.0').isInteger()", False),
    ("isQuantity('1MiB') || isQuantity('')", False),
    ("!format.dns1123Label().validate('a-b').hasValue()", True),
    (
        "format.uri().validate('x').hasValue() && format.uuid().validate('x').hasValue()",
        True,
    ),
    (
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.2', true) && !isSemver('v1.2')",
        True,
    ),
    ("[[1], [2]].flatten() == [1, 2] && [2, 1].sort() == [1, 2]", True),
    ("self.list.sortBy(x, x).reverse() == ['b', 'a']", True),
    (
        "self.embedded.metadata.name == 'p' && self.embedded.kind == 'Pod'",
        True,
    ),
];

fn schema(rules: &[Value]) -> Value {
    let text = json!({"type": "string", "maxLength": 20});
    let texts = json!({"type": "array", "maxItems": 3, "items": text});
    let mut set = texts.clone();
    set["x-kubernetes-list-type"] = json!("set");
    let port = json!({"type": "object", "properties": {"name": text, "port": {"type": "integer"}}});
    let mut by_name = json!({"type": "array", "maxItems": 3, "items": port, "x-kubernetes-list-type": "map"});
    by_name["x-kubernetes-list-map-keys"] = json!(["name"]);
    by_name["items"]["required"] = json!(["name"]);
    let spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "name": text, "size": {"type": "integer"}, "ratio": {"type": "number"}, "absent": text, "namespace": text,
        "a-b": {"type": "integer"}, "maybe": {"type": "string", "nullable": true, "maxLength": 5}, "list": texts, "set": set,
        "main": port, "byName": by_name, "any": {"x-kubernetes-int-or-string": true, "maxLength": 5},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "labels": {"type": "object", "maxProperties": 3, "additionalProperties": text},
        "when": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"}, "data": {"type": "string", "format": "byte", "maxLength": 8},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }});
    json!({"type": "object", "properties": {"spec": spec}})
}

fn object(kind: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": "one"}, "spec": {
        "name": "web", "size": 3, "ratio": 1.5, "namespace": "x", "a-b": 1, "maybe": null, "list": ["a", "b"], "set": ["a", "b"],
        "main": {"name": "http", "port": 80}, "byName": [{"name": "a", "port": 1}, {"name": "b", "port": 2}], "any": "80%",
        "free": {"x": 1}, "labels": {"app": "web", "tier": "front"}, "when": "2024-02-29T12:00:00Z", "day": "2024-02-29",
        "wait": "90s", "data": "aGk=", "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    }})
}

fn definition(kind: &str, rules: &[Value]) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema(rules)}}],
        },
    })
}

/// The part of a message that reports a failed evaluation.
fn is_failure(message: &str) -> bool {
    message.contains("evaluating rule") || message.contains("call arguments did not match")
}

fn by_olmkit(rule: &Value) -> Ends {
    let definition = definition("Rule", std::slice::from_ref(rule));
    if !validate_schemas(&definition, ApiVersion::V1).is_empty() {
        return Refused;
    }
    let findings = instance::check(&schema(std::slice::from_ref(rule)), &object("Rule"));
    match findings.first().map(|finding| finding.message.as_str()) {
        None => True,
        Some(message) if is_failure(message) => Fails,
        Some(_) => False,
    }
}

#[tokio::test]
async fn rules_end_as_on_the_api_server() {
    let rules: Vec<(Value, Ends)> = RULES
        .iter()
        .enumerate()
        .map(|(at, (rule, ends))| (json!({"rule": rule, "message": format!("#{at}#")}), *ends))
        .collect();
    let mut wrong = Vec::new();
    for (rule, ends) in &rules {
        let ours = by_olmkit(rule);
        if ours != *ends {
            wrong.push(format!("olmkit: {rule} ends {ours:?}, not {ends:?}"));
        }
    }

    let server = Server::start().await;
    for (at, (rule, _)) in rules.iter().enumerate().filter(|(_, (_, ends))| *ends == Refused) {
        let definition = definition(&format!("Refused{at}"), std::slice::from_ref(rule));
        if server.define(&definition).await.is_ok() {
            wrong.push(format!("the API server accepts {rule}"));
        }
    }
    // Few in one definition: the total cost of its rules is limited.
    let accepted: Vec<&(Value, Ends)> = rules.iter().filter(|(_, ends)| *ends != Refused).collect();
    for (at, part) in accepted.chunks(8).enumerate() {
        let kind = format!("Accepted{at}");
        let own: Vec<Value> = part.iter().map(|(rule, _)| rule.clone()).collect();
        if let Err(problem) = server.define(&definition(&kind, &own)).await {
            wrong.push(format!("the API server rejects {kind}: {problem}"));
            continue;
        }
        let path = format!(
            "/apis/{GROUP}/v1/namespaces/default/{}s?dryRun=All",
            kind.to_lowercase()
        );
        let answer = server.create(&path, &object(&kind)).await.err().unwrap_or_default();
        for (rule, ends) in part {
            let mark = rule["message"].as_str().unwrap();
            let own = answer.split("spec: ").find(|message| message.contains(mark));
            let theirs = match own {
                None => True,
                Some(message) if is_failure(message) => Fails,
                Some(_) => False,
            };
            if theirs != *ends {
                wrong.push(format!("the API server: {rule} ends {theirs:?}, not {ends:?}: {own:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
