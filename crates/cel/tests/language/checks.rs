//! Results of the type checker.

use std::collections::BTreeMap;
use std::sync::Arc;

use olmkit_cel::{CompileError, Env, Library, ObjectType, Program, Type};

fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let fields: BTreeMap<String, Type> = fields
        .iter()
        .map(|(name, of)| ((*name).to_owned(), of.clone()))
        .collect();
    let name = name.to_owned();
    Type::Object(Arc::new(ObjectType { name, fields }))
}

fn env() -> Env {
    let port = object("port", &[("number", Type::Int), ("name", Type::String)]);
    let own = object(
        "self",
        &[
            ("name", Type::String),
            ("size", Type::Int),
            ("ratio", Type::Double),
            ("any", Type::Dyn),
            ("ports", Type::list(port.clone())),
            ("main", port),
            ("__namespace__", Type::String),
            ("labels", Type::map(Type::String, Type::String)),
            ("when", Type::Timestamp),
        ],
    );
    Env::kubernetes().variable_of("self", own)
}

fn verdict(env: &Env, text: &str) -> String {
    match Program::compile(env, text) {
        Ok(program) => program.result().to_string(),
        Err(CompileError::Refused(error)) => error.to_string(),
        Err(CompileError::Undecided(error)) => format!("undecided: {error}"),
    }
}

#[test]
fn types_are_found() {
    for (text, wanted) in [
        ("self.name", "string"),
        ("self.ports.map(p, p.number)", "list(int)"),
        ("self.ports[0].name + 'a'", "string"),
        ("self.any.deep[0]", "dyn"),
        ("self.any == 1 || self.any == 'a'", "bool"),
        ("self.?name", "optional_type(string)"),
        ("self.?main.?number.orValue(1)", "int"),
        ("self.labels[?'a'].orValue('')", "string"),
        ("has(self.main.name) ? self.main.name : ''", "string"),
        ("[]", "list(dyn)"),
        ("[] == [1]", "bool"),
        ("self.size in [1, 2]", "bool"),
        ("self.ports.exists(p, p == self.main)", "bool"),
        ("type(self.any) == int ? self.any < 5 : self.any.endsWith('%')", "bool"),
        ("self.ports.transformMap(i, p, p.name)", "map(int, string)"),
        ("self.when > timestamp('2024-01-01T00:00:00Z')", "bool"),
        ("self.main == null", "bool"),
        ("'%s %d'.format([self.name, self.size])", "string"),
        (
            "dyn([1, 'a'].size())",
            "ERROR: <input>:1:9: expected type 'int' but found 'string'",
        ),
        ("dyn(self.name)", "dyn"),
        ("self.ratio > 1", "bool"),
        ("Unknown{a: 1}.b", "dyn"),
    ] {
        assert_eq!(verdict(&env(), text), wanted, "{text}");
    }
}

#[test]
fn expressions_with_type_errors_are_rejected() {
    for (text, wanted) in [
        ("self.other", "1:5: undefined field 'other'"),
        ("other", "1:1: undeclared reference to 'other' (in container '')"),
        (
            "self.name.unknown()",
            "1:10: undeclared reference to 'unknown' (in container '')",
        ),
        (
            "self.name + 1",
            "1:11: found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "self.name == 1",
            "1:11: found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "self.ratio + 1",
            "1:12: found no matching overload for '_+_' applied to '(double, int)'",
        ),
        (
            "self.name == null",
            "1:11: found no matching overload for '_==_' applied to '(string, null)'",
        ),
        ("self.size && true", "1:5: expected type 'bool' but found 'int'"),
        (
            "self.size.startsWith('a')",
            "1:10: found no matching overload for 'startsWith' applied to 'int.(string)'",
        ),
        (
            "self.name.all(c, c == 'a')",
            "1:5: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "self.ports.all(p, p.number)",
            "1:20: expected type 'bool' but found 'int'",
        ),
        (
            "self['name']",
            "1:5: found no matching overload for '_[_]' applied to '(object, string)'",
        ),
        (
            "self == self.main",
            "1:6: found no matching overload for '_==_' applied to '(object, object)'",
        ),
        ("self.name.size", "1:10: type 'string' does not support field selection"),
        (
            "self.?name == 'a'",
            "1:12: found no matching overload for '_==_' applied to '(optional_type(string), string)'",
        ),
        ("{'a': 1, 'b': 'c'}", "1:15: expected type 'int' but found 'string'"),
        (
            "quantity('1').sign()",
            "1:14: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
        ),
        (
            "math.greatest(1, 2)",
            "1:1: undeclared reference to 'math' (in container '')",
        ),
        ("1 + ", "1:5: Syntax error: mismatched input '<EOF>'"),
        ("self.size = 1", "1:11: Syntax error: token recognition error at: '='"),
        ("\nself.name ==\n 'a' b", "3:6: Syntax error: mismatched input 'b'"),
    ] {
        let found = verdict(&env(), text);
        assert_eq!(found.strip_prefix("ERROR: <input>:"), Some(wanted), "{text}");
    }
}

#[test]
fn libraries_say_which_kubernetes_they_need() {
    for (text, wanted) in [
        ("self.name.startsWith('a')", "1.25"),
        ("self.name.lowerAscii() == 'a' && isURL('a')", "1.25"),
        ("self.?name.hasValue()", "1.29"),
        ("quantity('1').isInteger()", "1.29"),
        ("'%s'.format(['a']) == 'a'", "1.30"),
        ("sets.contains([1], [1])", "1.30"),
        ("isIP('::1')", "1.31"),
        ("format.uri().validate('a').hasValue()", "1.32"),
        ("self.__namespace__ == 'a'", "1.25"),
        ("self.namespace == 'a'", "1.32"),
        ("self.ports.all(i, p, i == p.number)", "1.33"),
        ("isSemver('1.2.3')", "1.34"),
        ("[2, 1].sort() == [1, 2]", "1.35"),
    ] {
        let program = Program::compile(&env(), text).unwrap();
        let needed = program.libraries().iter().map(|library| library.since()).max().unwrap();
        assert_eq!(needed.to_string(), wanted, "{text}");
    }
    assert!(Library::ALL.iter().all(|library| !library.name().is_empty()));
}

#[test]
fn the_standard_environment_has_no_kubernetes() {
    let env = Env::standard().variable_of("properties", Type::list(Type::map(Type::String, Type::Dyn)));
    assert_eq!(
        verdict(&env, "properties.exists(p, p.type == 'a' && p.value.b >= 1)"),
        "bool"
    );
    for refused in [
        "properties[0].?a == 1",
        "isURL('a')",
        "properties.all(i, p, true)",
        "'a'.lowerAscii() == 'a'",
    ] {
        assert!(verdict(&env, refused).starts_with("ERROR"), "{refused}");
    }
}
