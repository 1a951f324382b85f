//! The tables of facts about fields: `csv.txt` and `server.txt`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use olmkit_go::structs::{Structs, Type, newer};

/// Constraint on a field's value, in addition to its type.
#[derive(Debug)]
pub(super) enum Fact {
    /// One of these strings.
    Enum(Vec<&'static str>),
    /// A number in this range.
    Range(i64, i64),
    /// A port number; 0 counts as absent.
    Port,
    /// A user or group id.
    Id,
    /// A port number or the name of a port.
    Endpoint,
    /// As [`Fact::Endpoint`]; 0 and the empty string count as absent.
    Target,
    /// A number or a percentage, at most 100 %.
    Share,
    /// A number or a percentage.
    Surge,
    /// A quantity that is not negative.
    Amount,
    /// A string in this form. The empty string counts as absent.
    Is(&'static str),
    /// A map of labels.
    Labels,
    /// A string or list of at most this length.
    Most(usize),
    /// Must be absent or empty.
    Never,
    /// A list whose items have unique values of these fields, some of which have defaults, and the first release of OLM with
    /// this schema, if older ones lack it.
    Keys(Vec<(&'static str, Option<&'static str>)>, Option<&'static str>),
    /// A list of different items.
    Set,
    /// The schema ends here: everything below is accepted.
    Open,
    /// A string, although Go reads any value.
    Text,
    /// A string in base64.
    Base64,
}

/// The facts of one type in one table.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Fields that must be there.
    pub(super) required: Vec<&'static str>,
    /// Fields of which exactly one must be set.
    pub(super) one: Vec<&'static str>,
    fields: HashMap<&'static str, Vec<Fact>>,
}

/// A field with its type and facts.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// `None` for a field that the schema has and the Go types lack.
    pub(super) kind: Option<&'static Type>,
    /// Facts of the ClusterServiceVersion's schema.
    pub(super) schema: &'static [Fact],
    /// Facts of the API server's validation.
    pub(super) server: &'static [Fact],
}

/// A type with its fields and facts.
#[derive(Debug)]
pub(super) struct Shape {
    /// The name in the table of Go types.
    pub(super) name: &'static str,
    pub(super) fields: HashMap<&'static str, Field>,
    pub(super) schema: &'static Block,
    pub(super) server: &'static Block,
}

static NONE: LazyLock<Block> = LazyLock::new(Block::default);
static SCHEMA: LazyLock<HashMap<&str, Block>> = LazyLock::new(|| parse(include_str!("csv.txt")));
static SERVER: LazyLock<HashMap<&str, Block>> = LazyLock::new(|| parse(include_str!("server.txt")));
static SHAPES: LazyLock<Vec<OnceLock<Option<Shape>>>> = LazyLock::new(|| vec_of(newer().count()));

fn vec_of(length: usize) -> Vec<OnceLock<Option<Shape>>> {
    std::iter::repeat_with(OnceLock::new).take(length).collect()
}

/// The shape of a struct in the table of Go types.
pub(super) fn shape(at: usize) -> Option<&'static Shape> {
    SHAPES.get(at)?.get_or_init(|| build(newer(), at)).as_ref()
}

fn build(table: &'static Structs, at: usize) -> Option<Shape> {
    let entry = table.at(at)?;
    let block = |table: &'static HashMap<&str, Block>| table.get(entry.name).unwrap_or(&NONE);
    let (schema, server) = (block(&SCHEMA), block(&SERVER));
    let field = |name: &'static str, kind| {
        let facts = |block: &'static Block| block.fields.get(name).map_or(&[][..], Vec::as_slice);
        Field {
            name,
            kind,
            schema: facts(schema),
            server: facts(server),
        }
    };
    let mut fields: HashMap<&'static str, Field> = HashMap::with_capacity(entry.by_name.len());
    for (name, path) in &entry.by_name {
        fields.insert(name, field(name, table.along(entry, path)));
    }
    for name in schema.fields.keys() {
        fields.entry(name).or_insert_with(|| field(name, None));
    }
    Some(Shape {
        name: entry.name,
        fields,
        schema,
        server,
    })
}

fn parse(text: &'static str) -> HashMap<&'static str, Block> {
    let mut blocks = HashMap::new();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(head) = lines.next() {
        let mut words = head.split(' ');
        let Some(name) = words.next() else { continue };
        let mut block = Block::default();
        for word in words {
            match (word.strip_prefix('!'), word.strip_prefix("one:")) {
                (Some(field), _) => block.required.push(field),
                (None, Some(fields)) => block.one = fields.split(',').collect(),
                _ => {}
            }
        }
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            let mut words = line.trim_start().split(' ');
            let Some(field) = words.next() else { continue };
            block.fields.insert(field, words.filter_map(fact).collect());
        }
        blocks.insert(name, block);
    }
    blocks
}

/// Parses a word of the tables. `default` only informs readers: a field with a default is not required.
fn fact(word: &'static str) -> Option<Fact> {
    let (name, value) = word.split_once(':').unwrap_or((word, ""));
    Some(match name {
        "enum" => Fact::Enum(value.split(',').collect()),
        "range" => {
            let (least, most) = value.split_once('-')?;
            Fact::Range(least.parse().ok()?, most.parse().unwrap_or(i64::MAX))
        }
        "port" => Fact::Port,
        "id" => Fact::Id,
        "endpoint" => Fact::Endpoint,
        "target" => Fact::Target,
        "share" => Fact::Share,
        "surge" => Fact::Surge,
        "amount" => Fact::Amount,
        "is" => Fact::Is(value),
        "labels" => Fact::Labels,
        "most" => Fact::Most(value.parse().ok()?),
        "never" => Fact::Never,
        "keys" => {
            let (keys, since) = match value.split_once('@') {
                Some((keys, since)) => (keys, Some(since)),
                None => (value, None),
            };
            Fact::Keys(keys.split(',').map(key).collect(), since)
        }
        "set" => Fact::Set,
        "open" => Fact::Open,
        "string" => Fact::Text,
        "base64" => Fact::Base64,
        _ => return None,
    })
}

fn key(word: &'static str) -> (&'static str, Option<&'static str>) {
    match word.split_once('=') {
        Some((name, default)) => (name, Some(default)),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_names_a_field_and_known_facts() {
        for (file, text) in [
            ("csv.txt", include_str!("csv.txt")),
            ("server.txt", include_str!("server.txt")),
        ] {
            let mut shape: Option<&Shape> = None;
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                if let Some(field) = line.strip_prefix(' ') {
                    let mut words = field.split(' ');
                    let name = words.next().unwrap();
                    let known = shape.unwrap().fields.get(name);
                    assert!(known.is_some(), "{file}: {} has no field {name}", shape.unwrap().name);
                    for word in words {
                        assert!(word == "default" || fact(word).is_some(), "{file}: {word}");
                    }
                    continue;
                }
                let mut words = line.split(' ');
                let name = words.next().unwrap();
                let Some(&Type::Struct(at)) = newer().get(name) else {
                    panic!("{file}: no type {name}")
                };
                shape = super::shape(at);
                for word in words {
                    let list = word.strip_prefix('!').or_else(|| word.strip_prefix("one:")).unwrap();
                    for field in list.split(',') {
                        assert!(
                            shape.unwrap().fields.contains_key(field),
                            "{file}: {name} has no field {field}"
                        );
                    }
                }
            }
        }
    }
}
