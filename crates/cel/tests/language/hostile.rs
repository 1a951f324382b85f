//! Expressions that try to exceed their budget. A panic, a stack overflow or a hang fails the tests: everything runs in
//! this process, on threads with small stacks.

use std::thread;
use std::time::{Duration, Instant};

use olmkit_cel::{Budget, Value};
use serde_json::json;

use super::ending;

/// Runs on a stack of one MiB, half of the default for threads, although the build is not optimized.
fn ends(name: String, text: String) {
    let shown = name.clone();
    let work = move || {
        let own = Value::from_json(&json!({"items": vec!["a"; 1_000], "text": "a".repeat(10_000), "n": 7}));
        let started = Instant::now();
        let found = ending(&text, &own, &mut Budget::for_object());
        let taken = started.elapsed();
        assert!(taken < Duration::from_secs(60), "{name} took {taken:?}");
        println!(
            "{:>6} ms  {name}: {}",
            taken.as_millis(),
            found.chars().take(60).collect::<String>()
        );
        drop(own);
    };
    let thread = thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
    assert!(thread.join().is_ok(), "{shown} panicked");
}

fn run(table: Vec<(String, String)>) {
    for (name, text) in table {
        ends(name, text);
    }
}

fn named(texts: &[&str]) -> Vec<(String, String)> {
    texts
        .iter()
        .map(|text| (text.chars().take(70).collect(), (*text).to_owned()))
        .collect()
}

#[test]
fn loops_are_counted() {
    run(named(&[
        "self.items.all (a, self.items.all (b, self.items.all (c, self.items.all (d, true))))",
        "self.items\n.all(a, self.items.all(b, self.items.all(c, true)))",
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, [0,1,2,3,4,5,6,7,8,9].all(g, [0,1,2,3,4,5,6,7,8,9].all(h, true))))))))",
        "self.items.map(a, self.items.map(b, self.items.map(c, a + b + c))).size() > 0",
        "self.items.exists(a, self.items.exists(b, self.items.exists(c, a + b == c)))",
        "self.items.exists_one(a, self.items.exists_one(b, self.items.exists_one(c, a == b)))",
        "self.items.filter(a, self.items.filter(b, self.items.filter(c, a == b).size() > 1).size() > 1)",
        "self.items.transformList(i, a, self.items.transformList(j, b, self.items.transformList(k, c, i + j + k))).size()",
        "self.items.transformMap(i, a, self.items.transformMap(j, b, self.items)).size()",
        "self.items.transformMapEntry(i, a, {string(i): self.items.map(x, x + x)}).size()",
        "self.items.sortBy(a, self.items.sortBy(b, self.items.sortBy(c, c).size()).size())",
        "lists.range(1000000000).size()",
        "lists.range(9223372036854775807).size()",
        "lists.range(100000).all(a, lists.range(100000).all(b, a + b >= 0))",
        "lists.range(100000).map(x, lists.range(100000)).flatten().size()",
        "lists.range(30000).distinct().size()",
        "lists.range(100000).reverse().sort().size()",
        "lists.range(3000).map(x, self.text + string(x)).sort().size()",
        "lists.range(3000).map(x, self.text + string(x)).distinct().size()",
        "sets.equivalent(lists.range(50000), lists.range(50000))",
        "sets.contains(self.items.map(x, self.text), self.items.map(x, self.text + 'b'))",
        "lists.range(100000).sum() + lists.range(100000).max()",
        "lists.range(20000).map(x, 0.0 / 0.0).sort().size()",
        "self.items.map(a, self.items).map(b, self.items.map(c, b)) == self.items.map(a, self.items).map(b, self.items.map(c, b))",
        "self.items.all(x, self.items.indexOf('b') == -1 && self.items.lastIndexOf('b') == -1 && self.items.join(self.text).size() > 0)",
    ]));
}

#[test]
fn bytes_are_counted() {
    run(named(&[
        "self.text.replace('', self.text).replace('', self.text).size()",
        "self.text.replace('a', self.text).replace('a', self.text).replace('a', self.text)",
        "self.text.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa')",
        "self.items.map(x, self.text).join(self.text).size()",
        "self.items.map(x, self.text.split('')).size()",
        "self.text.split('').map(x, self.text.split('')).size()",
        "self.items.map(x, self.text.findAll('a')).size()",
        "self.items.map(x, self.text.findAll('')).size()",
        "self.items.map(x, self.text.upperAscii() + self.text.lowerAscii() + self.text.trim() + self.text.substring(1)).size()",
        "self.items.map(x, strings.quote(self.text)).size()",
        "self.items.map(x, bytes(self.text)).size()",
        "'%s%s%s%s'.format([self.text, self.text, self.text, self.text]).replace('a', self.text)",
        "'%s'.format([self.items.map(x, self.items)])",
        "'%s'.format([[[[[[self.items.map(x, self.items.map(y, self.text))]]]]]])",
        "'%.1000000000f'.format([1.0])",
        "'%.1000000000e'.format([1.0])",
        "'%.99999999999999999999f'.format([1.0])",
        "'%.100f'.format([1e308])",
        "'%x'.format([self.text.replace('a', 'aaaaaaaaaaaaaaaa')])",
        "'%1000000000d'.format([1])",
        "{'a': self.text}.transformMap(k, v, v.replace('a', v))",
        "self.items.map(x, {'a': {'b': {'c': self.items.map(y, y)}}}).size()",
        "self.items.map(x, url('https://example.com/' + self.text).getQuery()).size()",
        "url('https://example.com/?' + self.text.replace('a', 'a&')).getQuery().size()",
        "self.items.map(x, optional.of(self.items.map(y, optional.of(y)))).size()",
    ]));
    let doubled = (0..60).fold("self.text".to_owned(), |text, at| {
        format!("[{text}].map(x{at}, x{at} + x{at})[0]")
    });
    let list = (0..60).fold("self.items".to_owned(), |text, at| {
        format!("[{text}].map(x{at}, x{at} + x{at})[0]")
    });
    let nested = (0..60).fold("self.items".to_owned(), |text, at| {
        format!("[{text}].map(x{at}, [x{at}, x{at}])[0]")
    });
    let maps = (0..60).fold("{1: 1}".to_owned(), |text, at| {
        format!("[{text}].map(x{at}, {{'a': x{at}, 'b': x{at}}})[0]")
    });
    let keys = (0..100).fold("[1]".to_owned(), |text, at| {
        format!("{text}.map(x{at}, {{x{at}: x{at}}})")
    });
    run(vec![
        ("a doubled text".to_owned(), doubled.clone()),
        ("a doubled list".to_owned(), list.clone()),
        ("the size of a doubled list".to_owned(), format!("({list}).size()")),
        (
            "a doubled tree compared".to_owned(),
            format!("({nested}) == ({nested})"),
        ),
        ("a doubled tree printed".to_owned(), format!("'%s'.format([{nested}])")),
        ("a doubled map printed".to_owned(), format!("'%s'.format([{maps}])")),
        (
            "a doubled tree flattened".to_owned(),
            format!("({nested}).flatten(1000).size()"),
        ),
        ("a doubled type".to_owned(), keys),
        (
            "a doubled text in a loop".to_owned(),
            format!("self.items.all(i, ({doubled}).size() > 1)"),
        ),
    ]);
}

#[test]
fn regular_expressions_are_bounded() {
    run(named(&[
        "self.text.matches('(a{1000}){1000}')",
        "self.text.matches('((((a{100}){100}){100}){100})')",
        "self.text.matches('(a*)*b')",
        "self.text.matches('(a|aa)+$')",
        "self.text.matches('^(([a-z])+.)+[A-Z]([a-z])+$')",
        "self.text.matches('(x+x+)+y')",
        "self.text.matches('.*.*.*.*.*.*.*.*.*.*=.*')",
        "self.text.matches('\\\\pL{500}')",
        "self.items.all(x, self.text.matches('(a|b|c|d|e|f)*z' + x))",
        "lists.range(100000).all(x, 'a'.matches('a{' + string(x) + '}') || true)",
        "lists.range(100000).all(x, self.text.matches('[a-z]{' + string(x % 1000) + '}') || true)",
        "lists.range(1000).map(x, self.text.findAll('a.*')).size()",
        "self.text.findAll('a*?').size()",
        "self.text.findAll('(?i)(a|b)*?c').size()",
        "self.text.matches(self.text)",
        "self.text.find(self.text.replace('a', '(a?)')).size()",
        "self.text.matches('[' + self.text + ']')",
        "self.text.matches('{1,1000}')",
        "self.text.matches('a{99999,}')",
        "self.text.matches('(?P<n')",
    ]));
    let groups = format!("self.text.matches('{}')", "(".repeat(50_000));
    let classes = format!("self.text.matches('{}')", "[".repeat(50_000));
    let pairs = format!("self.text.matches('{}{}')", "(".repeat(40_000), ")".repeat(40_000));
    let alternatives = format!("self.text.matches('{}')", "a|".repeat(40_000));
    run(vec![
        ("50,000 open groups".to_owned(), groups),
        ("50,000 open classes".to_owned(), classes),
        ("40,000 nested groups".to_owned(), pairs),
        ("40,000 alternatives".to_owned(), alternatives),
        (
            "many states over a long text".to_owned(),
            "self.text.replace('a', 'aaaaaaaaaa').matches('(a{100}){30}b')".to_owned(),
        ),
        (
            "searches that look at all that is left".to_owned(),
            "self.text.replace('a', 'aaaaaaaaaa').findAll('a.*b|a').size()".to_owned(),
        ),
    ]);
}

#[test]
fn long_texts_are_bounded() {
    let mut table = Vec::new();
    for piece in [
        "(",
        "[",
        "{",
        "!",
        "-",
        "a.",
        "a[",
        "f(",
        "a?",
        "a?b:",
        "1+",
        "a&&",
        "a||",
        "!(",
        "-(",
        "[[",
        "{1:",
        "a.b(",
        "a.?",
        "[?",
        "'",
        "\"",
        "r'",
        "b'",
        "'''",
        "`",
        "0x",
        "1e",
        "..",
        "\\",
        "a in ",
        "==",
        "has(",
        "a.all(",
        "x.all(x,",
        "//",
        "\n",
        "é",
        "\u{0}",
        "9",
        "a",
        "1,",
        "size(",
        "%",
        "T{",
        "T{a:",
        "a.b.",
        "optional.of(",
        ")",
        "]",
        "}",
    ] {
        for length in [1_000, 90_000, 200_000] {
            let count = length / piece.len() + 1;
            table.push((format!("{piece:?} for {length} bytes"), piece.repeat(count)));
        }
    }
    run(table);
}

#[test]
fn deep_texts_are_bounded() {
    let mut table = Vec::new();
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{1:", "1", "}"),
        ("true ? ", "1", " : 2"),
        ("[1].map(x, ", "x", ")"),
        ("[1].all(x, ", "true", ")"),
        ("size([", "1", "])"),
        ("!(", "true", ")"),
        ("-(", "1", ")"),
        ("[1][", "0", "]"),
        ("optional.of(", "1", ")"),
        ("has(self.a[", "0", "].b)"),
        ("dyn([", "1", "])"),
        ("{'a': [", "1", "]}"),
        ("1 + (", "1", ")"),
        ("true && (", "true", ")"),
        ("[1].sortBy(x, ", "x", ")"),
        ("string(", "1", ")"),
        ("'%s'.format([", "1", "])"),
        ("[[1].map(y, y)].map(x, x == ", "[1]", " ? [1] : [2])"),
    ] {
        // Some are just within the bound, so that every stage runs over the highest tree.
        for depth in [10, 19, 20, 21, 30, 31, 32, 60, 62, 63, 65, 5_000] {
            table.push((
                format!("{open}…{close} nested {depth} times"),
                format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)),
            ));
        }
    }
    for (start, piece) in [
        ("1", " + 1"),
        ("self", ".a"),
        ("self", "[0]"),
        ("true", " ? 1 : true"),
        ("1", " == 1"),
        ("'a'", ".trim()"),
        ("self", ".?a"),
        ("true", " && true"),
        ("1", " - -1"),
        ("[1]", ".map(x, x)"),
        ("[1]", " + [1]"),
    ] {
        for length in [30, 61, 62, 63, 150, 10_000] {
            let end = if piece.contains('?') && piece.contains(':') {
                " ? 1 : 2"
            } else {
                ""
            };
            table.push((
                format!("{start}{piece} {length} times"),
                format!("{start}{}{end}", piece.repeat(length)),
            ));
        }
    }
    let literal = format!("[{}].all(x, x > 0)", vec!["1"; 30_000].join(", "));
    let long_text = format!("'{}'.size() == 90000", "a".repeat(90_000));
    let map = format!(
        "{{{}}}.size()",
        (0..9_000)
            .map(|at| format!("'k{at}': {at}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    table.push(("a list of 30,000 literals".to_owned(), literal));
    table.push(("a text of 90,000 characters".to_owned(), long_text));
    table.push(("a map of 9,000 literals".to_owned(), map));
    table.push(("an int of 90,000 digits".to_owned(), "9".repeat(90_000)));
    table.push((
        "a double of 90,000 digits".to_owned(),
        format!("0.{}", "9".repeat(90_000)),
    ));
    run(table);
}

#[test]
fn random_texts_end() {
    // A fixed seed keeps the expressions the same in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let pieces = [
        "self",
        ".items",
        ".text",
        ".n",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        ".",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "in",
        "&&",
        "||",
        "!",
        "1",
        "2u",
        "3.5",
        "'a'",
        "\"b\"",
        "b'c'",
        "r'\\d'",
        "true",
        "null",
        "x",
        "y",
        ".map(x, ",
        ".all(x, ",
        ".filter(y, ",
        ".size()",
        "has(self.a)",
        ".?b",
        "[?0]",
        ".orValue(1)",
        "optional.of(",
        "quantity('1')",
        "ip('::1')",
        "'%s'.format([",
        "duration('1s')",
        "timestamp(1)",
        ".matches('a+')",
        ".sort()",
        ".sum()",
        "lists.range(3)",
        "type(",
        "dyn(",
        " ",
        "\n",
        "\u{1f600}",
    ];
    let own = Value::from_json(&json!({"items": ["a", "b"], "text": "abc", "n": 7}));
    for _ in 0..20_000 {
        let length = next(25) + 1;
        let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
        ending(&text, &own, &mut Budget::new(20_000, 1 << 20));
    }
}
