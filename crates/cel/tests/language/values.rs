//! Values of expressions, from the language definition and the documentation of Kubernetes.

use olmkit_cel::{Budget, Value};
use serde_json::json;

use super::ending;

#[track_caller]
fn check(vectors: &[(&str, &str)]) {
    let own = Value::from_json(&json!({
        "name": "web", "size": 3, "half": 0.5, "on": true, "nothing": null,
        "names": ["b", "a", "c"], "ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}],
        "labels": {"app": "web", "tier": "front"}, "__namespace__": "default", "a__dash__b": 1,
    }));
    let mut wrong = Vec::new();
    for (text, wanted) in vectors {
        let found = ending(text, &own, &mut Budget::for_object());
        if found != *wanted {
            wrong.push(format!("{text}\n  is {found}\n  not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn literals_and_operators() {
    check(&[
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "refused"),
        ("0xFf", "255"),
        ("18446744073709551615u", "18446744073709551615u"),
        ("1.5e3", "1500.0"),
        (".5", "0.5"),
        (r"'a\n\x41\u00e9\101\''", r#""a\nAéA'""#),
        (r"r'\n'", r#""\\n""#),
        ("'''a'b\n'''", r#""a'b\n""#),
        (r"b'\xff\377a'", "b[255, 255, 97]"),
        ("'a' 'b'", "refused"),
        ("1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("7 / -2", "-3"),
        ("7 % -2", "1"),
        ("9223372036854775807 + 1", "error: integer overflow"),
        ("-(-9223372036854775807 - 1)", "error: integer overflow"),
        ("(-9223372036854775807 - 1) / -1", "error: integer overflow"),
        ("1 / 0", "error: division by zero"),
        ("1 % 0", "error: modulus by zero"),
        ("1.0 / 0.0 > 1000.0", "true"),
        ("0u - 1u", "error: integer overflow"),
        ("1 < 1.5 && 2u > 1 && 1 <= 1u", "true"),
        ("1 == 1.0", "refused"),
        ("dyn(1) == 1.0 && dyn(1u) == 1", "true"),
        ("dyn(1) == 'a'", "false"),
        ("'a' < 'b' && b'a' < b'b' && false < true", "true"),
        ("'é'.size() == 1 && size(b'é') == 2", "true"),
        ("!!true && --1 == 1 && !-1 == 1", "refused"),
        ("!!true && --1 == 1", "true"),
        ("true ? 1 : 2", "1"),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}", "true"),
        ("[1, 2] + [3]", "[1, 2, 3]"),
        ("{'a': 1, 'a': 2}", r#"{"a": 2}"#),
        ("{1: 'a'}[1]", r#""a""#),
        ("[1][1]", "error: index out of bounds"),
        ("{'a': 1}.b", "error: no such key: b"),
        ("[1, 'a']", "refused"),
        ("type(1) == int && type('a') != int && type(type(1)) == type", "true"),
        (
            "type(timestamp('2024-01-01T00:00:00Z')) == google.protobuf.Timestamp",
            "true",
        ),
        ("// a comment\n1 // another", "1"),
        ("a.true", "refused"),
        ("namespace", "refused"),
        ("", "refused"),
        ("1 +", "refused"),
        ("(1", "refused"),
        ("1 ? 2 : 3", "refused"),
        ("'a", "refused"),
        ("google.protobuf.Int32Value{value: 1}", "undecided"),
    ]);
}

#[test]
fn logic_is_decided_by_any_term() {
    check(&[
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 && false", "false"),
        ("true || 1 / 0 == 1", "true"),
        ("1 / 0 == 1 || true", "true"),
        ("1 / 0 == 1 && true", "error: division by zero"),
        ("1 / 0 == 1 || false", "error: division by zero"),
        ("[1, 0].exists(x, 1 / x == 1)", "true"),
        ("[0, 1].exists(x, 1 / x == 1)", "true"),
        ("[0, 1].all(x, 1 / x == 2)", "false"),
        ("[0, 1].all(x, 1 / x == 1)", "error: division by zero"),
        ("false && self.nowhere", "false"),
        ("self.nowhere.deep || true", "true"),
    ]);
}

#[test]
fn macros() {
    check(&[
        ("has(self.name) && !has(self.other) && has(self.nothing)", "true"),
        ("has(self)", "refused"),
        ("[1, 2, 3].map(x, x * 2)", "[2, 4, 6]"),
        ("[1, 2, 3].map(x, x > 1, x * 2)", "[4, 6]"),
        ("[1, 2, 3].filter(x, x > 1)", "[2, 3]"),
        ("[1, 2, 2].exists_one(x, x == 1)", "true"),
        ("[1, 2, 2].exists_one(x, x == 2)", "false"),
        ("{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", "true"),
        ("{'a': 1}.map(k, k)", r#"["a"]"#),
        ("[[1], [2]].map(x, x.map(y, y + x[0]))", "[[2], [4]]"),
        ("[1].map(x, [2].map(x, x))", "[[2]]"),
        ("[1].map(1, 2)", "refused"),
        ("1.map(x, x)", "refused"),
        ("self.size.map(x, x)", "error: no such overload"),
        ("[1, 2].all(i, v, i + 1 == v)", "true"),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", "true"),
        ("['a', 'b'].transformList(i, v, i)", "[0, 1]"),
        ("['a', 'b'].transformList(i, v, i > 0, v)", r#"["b"]"#),
        ("['a', 'b'].transformMap(i, v, v + v)", r#"{0: "aa", 1: "bb"}"#),
        ("['a', 'b'].transformMapEntry(i, v, {v: i})", r#"{"a": 0, "b": 1}"#),
        (
            "['a', 'a'].transformMapEntry(i, v, {v: i})",
            "error: insert failed: key a already exists",
        ),
        ("[3, 1, 2].sortBy(x, -x)", "[3, 2, 1]"),
    ]);
}

#[test]
fn optionals() {
    check(&[
        ("self.?name.orValue('none')", r#""web""#),
        ("self.?other.orValue('none')", r#""none""#),
        ("self.?other.?deep.hasValue()", "false"),
        ("self.?labels.app", r#"some("web")"#),
        ("self.labels[?'app'].value()", r#""web""#),
        ("[1, 2][?5].hasValue()", "false"),
        ("[1][?0].optMap(x, x + 1)", "some(2)"),
        ("optional.none().optMap(x, x + 1)", "none"),
        ("optional.of({'a': 1}).optFlatMap(m, m.?a)", "some(1)"),
        ("optional.none().or(optional.of(1)).value()", "1"),
        ("optional.none().value()", "error: optional.none() dereference"),
        ("optional.of(1).orValue(1 / 0)", "1"),
        ("[?optional.of(1), ?optional.none(), 2]", "[1, 2]"),
        ("{?'a': optional.of(1), ?'b': optional.none()}", r#"{"a": 1}"#),
        ("optional.ofNonZeroValue('').hasValue()", "false"),
        ("[1, 2].first().value() + [1, 2].last().value()", "3"),
        ("[optional.of(1), optional.none()].unwrapOpt()", "[1]"),
        (
            "optional.of(1) == optional.of(1) && optional.none() != optional.of(1)",
            "true",
        ),
    ]);
}

#[test]
fn conversions() {
    check(&[
        (
            "int('12') + int(1.9) + int(3u) + int(timestamp('1970-01-01T00:00:05Z'))",
            "21",
        ),
        ("int('a')", "refused"),
        ("int(1e19)", "refused"),
        ("uint(-1)", "refused"),
        ("double('1.5') + double(1)", "2.5"),
        (
            "string(1) + string(1.5) + string(true) + string(1u) + string(b'a')",
            r#""11.5true1a""#,
        ),
        ("string(1e6)", r#""1e+06""#),
        ("string(duration('1h30m'))", r#""5400s""#),
        ("string(duration('1.5s'))", r#""1.5s""#),
        (
            "string(timestamp('2024-02-29T12:00:00.5Z'))",
            r#""2024-02-29T12:00:00.5Z""#,
        ),
        ("string(timestamp('2024-02-29T12:00:00.5+01:00'))", "undecided"),
        (
            "timestamp('2024-02-29T12:00:00+01:00') == timestamp('2024-02-29T11:00:00Z')",
            "true",
        ),
        ("bool('true') && !bool('f')", "true"),
        ("bool('yes')", "refused"),
        ("duration('x')", "refused"),
        ("timestamp('yesterday')", "refused"),
        (
            "duration(self.name)",
            "error: type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
    ]);
}

#[test]
fn times() {
    check(&[
        ("timestamp('2024-02-29T12:34:56.789Z').getFullYear()", "2024"),
        ("timestamp('2024-02-29T12:34:56.789Z').getMonth()", "1"),
        ("timestamp('2024-02-29T12:34:56.789Z').getDate()", "29"),
        ("timestamp('2024-02-29T12:34:56.789Z').getDayOfMonth()", "28"),
        ("timestamp('2024-02-29T12:34:56.789Z').getDayOfYear()", "59"),
        ("timestamp('2024-02-29T12:34:56.789Z').getDayOfWeek()", "4"),
        ("timestamp('2024-02-29T12:34:56.789Z').getMilliseconds()", "789"),
        ("timestamp('2024-02-29T12:34:56Z').getHours('+02:30')", "15"),
        ("timestamp('2024-02-29T00:00:00Z').getDate('-01:00')", "28"),
        (
            "timestamp('2024-02-29T12:34:56Z').getHours('Europe/Berlin')",
            "undecided",
        ),
        ("timestamp('0001-01-01T00:00:00Z').getFullYear()", "1"),
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
            "error: timestamp overflow",
        ),
        (
            "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
            "true",
        ),
        ("duration('90m').getHours()", "1"),
        ("duration('90m').getMinutes()", "90"),
        ("duration('1500ms').getMilliseconds()", "1500"),
        (
            "duration('1h') < duration('61m') && -duration('1s') == duration('-1s')",
            "refused",
        ),
    ]);
}

#[test]
fn texts() {
    check(&[
        (
            "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')",
            "true",
        ),
        ("'äbc'.charAt(0) + 'äbc'.charAt(3)", r#""ä""#),
        ("'abc'.charAt(4)", "error: index out of range: 4"),
        ("'hello mellow'.indexOf('ello')", "1"),
        ("'hello mellow'.indexOf('ello', 2)", "7"),
        ("'hello mellow'.indexOf('')", "0"),
        ("'hello mellow'.indexOf('jello')", "-1"),
        ("'hello mellow'.lastIndexOf('ello')", "7"),
        ("'hello mellow'.lastIndexOf('ello', 6)", "1"),
        (
            "'hello mellow'.lastIndexOf('ello', -1)",
            "error: index out of range: -1",
        ),
        ("['a', 'b'].join('-') + ['c'].join()", r#""a-bc""#),
        ("'TacoCat'.lowerAscii() + 'Taco'.upperAscii()", r#""tacocatTACO""#),
        (
            "'hello'.replace('l', 'L') + 'hello'.replace('l', 'L', 1) + 'ab'.replace('', '_')",
            r#""heLLoheLlo_a_b_""#,
        ),
        ("'a,b,c'.split(',')", r#"["a", "b", "c"]"#),
        ("'a,b,c'.split(',', 2)", r#"["a", "b,c"]"#),
        ("'a,b,c'.split(',', 0)", "[]"),
        ("'abc'.split('')", r#"["a", "b", "c"]"#),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", r#""cattaco""#),
        (
            "'tacocat'.substring(2, 1)",
            "error: invalid substring range. start: 2, end: 1",
        ),
        ("'tacocat'.substring(9)", "error: index out of range: 9"),
        ("'  a\\t'.trim()", r#""a""#),
        ("strings.quote('a\"\\n')", r#""\"a\\\"\\n\"""#),
        ("'abc'.reverse()", "refused"),
        ("'abc 123'.matches('^[a-z]+ \\\\d+$') && matches('a', 'a')", "true"),
        ("'abc 123'.find('[0-9]+') + 'abc'.find('[0-9]+')", r#""123""#),
        ("'123 abc 456'.findAll('[0-9]+')", r#"["123", "456"]"#),
        ("'123 abc 456'.findAll('[0-9]+', 1)", r#"["123"]"#),
        ("'aba'.findAll('a*')", r#"["a", "a"]"#),
    ]);
}

#[test]
fn formatted_texts() {
    check(&[
        ("'%s and %d%%'.format(['a', 5])", r#""a and 5%""#),
        (
            "'%s'.format([[1, 2.5, 'a', true, null]])",
            r#""[1, 2.500000, \"a\", true, null]""#,
        ),
        ("'%s %s'.format([{'a': 1}, b'x'])", r#""{\"a\":1} x""#),
        (
            "'%x %X %o %b %b'.format([-255, 'hi', 8, 5, true])",
            r#""-ff 6869 10 101 1""#,
        ),
        ("'%.2f %f'.format([1.005, 2.5])", r#""1.00 2.500000""#),
        (
            "'%s %s'.format([duration('90s'), timestamp('2024-01-01T00:00:00Z')])",
            r#""90s 2024-01-01T00:00:00Z""#,
        ),
        ("'%s'.format([[duration('90s')]])", r#""[duration(\"90s\")]""#),
        (
            "'%d'.format(['a'])",
            "error: decimal clause can only be used on integers",
        ),
        ("'%s'.format([])", "error: index 0 out of range"),
        ("'%q'.format(['a'])", "error: unrecognized formatting clause \"q\""),
        ("'%.1000000000f'.format([1.0])", "undecided"),
        ("'%e'.format([1.0])", "undecided"),
        ("'%s'.format([type(1)])", "undecided"),
    ]);
}

#[test]
fn lists_and_sets() {
    check(&[
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", "true"),
        ("[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0", "true"),
        ("[1, 3, 2].max() + [1, 3, 2].min()", "4"),
        ("[].max()", "error: max called on empty list"),
        (
            "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
            "true",
        ),
        ("[1, 2, 3, 4].slice(1, 3)", "[2, 3]"),
        ("[1].slice(0, 2)", "error: cannot slice(0, 2), list is length 1"),
        ("[[1], [2, 3]].flatten()", "[1, 2, 3]"),
        ("[3, 1, 2].sort()", "[1, 2, 3]"),
        ("['b', 'a'].sort().reverse()", r#"["b", "a"]"#),
        ("[1, 2, 1].distinct()", "[1, 2]"),
        ("lists.range(3)", "[0, 1, 2]"),
        (
            "sets.contains([1, 2, 3], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1])",
            "true",
        ),
        ("sets.contains([], [1])", "false"),
    ]);
}

#[test]
fn urls() {
    check(&[
        (
            "isURL('https://example.com/a') && !isURL('example') && isURL('/path')",
            "true",
        ),
        (
            "url('https://user@example.com:80/a/b?x=1#f').getHost()",
            r#""example.com:80""#,
        ),
        (
            "url('https://[::1]:80/').getHostname() + url('https://[::1]:80/').getPort()",
            r#""::180""#,
        ),
        ("url('HTTPS://example.com/path').getScheme()", r#""https""#),
        ("url('https://example.com/a/b?x#y').getEscapedPath()", r#""/a/b""#),
        (
            "url('https://example.com/?a=1&a=2&b=x+y').getQuery()",
            r#"{"a": ["1", "2"], "b": ["x y"]}"#,
        ),
        ("url('https://example.com/a%20b').getEscapedPath()", "undecided"),
    ]);
}

#[test]
fn addresses() {
    check(&[
        (
            "isIP('127.0.0.1') && isIP('::1') && !isIP('1.2.3') && !isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4')",
            "true",
        ),
        ("ip('127.0.0.1').family() + ip('::1').family()", "10"),
        (
            "ip.isCanonical('127.0.0.1') && !ip.isCanonical('2001:DB8::abcd')",
            "true",
        ),
        (
            "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('fe80::1').isLinkLocalUnicast()",
            "true",
        ),
        (
            "ip('224.0.0.1').isLinkLocalMulticast() && ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
            "true",
        ),
        ("string(ip('2001:DB8:0:0::1'))", r#""2001:db8::1""#),
        (
            "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
            "true",
        ),
        (
            "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/16'))",
            "true",
        ),
        (
            "string(cidr('192.168.1.5/24').masked()) + string(cidr('192.168.1.5/24').ip())",
            r#""192.168.1.0/24192.168.1.5""#,
        ),
        ("cidr('::/0').prefixLength()", "0"),
        (
            "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('10.0.0.0')",
            "true",
        ),
    ]);
}

#[test]
fn quantities_and_versions() {
    check(&[
        (
            "quantity('1.5Gi').isGreaterThan(quantity('1500Mi')) && quantity('100m').isLessThan(quantity('1'))",
            "true",
        ),
        ("quantity('1k').compareTo(quantity('1000'))", "0"),
        (
            "quantity('1k') == quantity('1000') && quantity('1') != quantity('2')",
            "true",
        ),
        ("quantity('5k').asInteger() + quantity('1Ki').asInteger()", "6024"),
        ("quantity('1.5').isInteger() || !quantity('2Mi').isInteger()", "false"),
        ("quantity('1.5').asApproximateFloat()", "1.5"),
        (
            "quantity('1').add(1).add(quantity('500m')).sub(2) == quantity('0.5')",
            "true",
        ),
        ("sign(quantity('-1m'))", "-1"),
        (
            "isQuantity('1Mi') && !isQuantity('1MiB') && !isQuantity('') && !isQuantity('ten')",
            "true",
        ),
        ("isQuantity('1Mi') && !isQuantity('1MiB') && !isQuantity('')", "true"),
        (
            "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true)",
            "true",
        ),
        (
            "semver('1.2.3-a').isLessThan(semver('1.2.3')) && semver('1.2.3').compareTo(semver('1.2.3')) == 0",
            "true",
        ),
        (
            "semver('v01.02', true).minor() + semver('1.0.7').patch() + semver('3.0.0').major()",
            "12",
        ),
        (
            "semver('1.2')",
            "error: unexpected end of input while parsing minor version number",
        ),
    ]);
}

#[test]
fn named_formats() {
    check(&[
        (
            "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('a.b').hasValue()",
            "true",
        ),
        (
            "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1035Label().validate('1a').hasValue()",
            "true",
        ),
        (
            "!format.qualifiedName().validate('a.b/C').hasValue() && !format.labelValue().validate('').hasValue()",
            "true",
        ),
        (
            "format.named('uri').value().validate('x').hasValue() && !format.named('nothing').hasValue()",
            "true",
        ),
        (
            "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
            "true",
        ),
        ("format.date().validate('2024-13-01').hasValue()", "true"),
        ("format.dns1123Label().validate('A').value()[0]", "undecided"),
    ]);
}

#[test]
fn fields_of_objects() {
    check(&[
        ("self.__namespace__ == 'default' && self.a__dash__b == 1", "true"),
        ("self.ports.filter(p, p.name == 'https')[0].port", "443"),
        ("self.labels.all(k, self.labels[k].size() > 2)", "true"),
        ("self.nothing == null", "true"),
        ("self.size > 2 && self.half < 1.0 && self.on", "true"),
        ("self.names.sort() == ['a', 'b', 'c']", "true"),
        ("other", "refused"),
        ("self.names.unknown()", "refused"),
        ("authorizer.path('/').check('get').allowed()", "refused"),
    ]);
}
