//! Plurals as operator-sdk's library forms them.

/// Words that have no plural.
const UNCOUNTABLE: [&str; 10] = [
    "equipment",
    "information",
    "rice",
    "money",
    "species",
    "series",
    "fish",
    "sheep",
    "jeans",
    "police",
];

/// Ends of words with their plurals. The first one that fits counts.
const ENDS: &[(&str, &str)] = &[
    ("humans", "humans"),
    ("human", "humans"),
    ("campuses", "campuses"),
    ("campus", "campuses"),
    ("statuses", "statuses"),
    ("status", "statuses"),
    ("zombies", "zombies"),
    ("zombie", "zombies"),
    ("moves", "moves"),
    ("move", "moves"),
    ("sexes", "sexes"),
    ("sex", "sexes"),
    ("children", "children"),
    ("child", "children"),
    ("men", "men"),
    ("man", "men"),
    ("people", "people"),
    ("person", "people"),
    ("ress", "resses"),
    ("lice", "lice"),
    ("mice", "mice"),
    ("louse", "lice"),
    ("mouse", "mice"),
    ("index", "indices"),
    ("vertex", "vertices"),
    ("matrex", "matrices"),
    ("indix", "indices"),
    ("vertix", "vertices"),
    ("matrix", "matrices"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ch", "ches"),
    ("x", "xes"),
    ("quy", "quies"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("iy", "iys"),
    ("oy", "oys"),
    ("uy", "uys"),
    ("y", "ies"),
    ("hive", "hives"),
    ("ffe", "ffes"),
    ("fe", "ves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("sis", "ses"),
    ("ia", "ia"),
    ("ta", "ta"),
    ("ium", "ia"),
    ("tum", "ta"),
    ("tomato", "tomatoes"),
    ("buffalo", "buffaloes"),
    ("bus", "buses"),
    ("alias", "aliases"),
    ("virus", "viri"),
    ("octopus", "octopi"),
    ("axis", "axes"),
    ("s", "s"),
];

/// The plural of a word in lower case.
pub(super) fn plural(word: &str) -> String {
    match word {
        "ox" | "oxen" => return "oxen".into(),
        "quiz" => return "quizzes".into(),
        _ if UNCOUNTABLE.contains(&word) => return word.into(),
        _ => {}
    }
    let found = ENDS
        .iter()
        .find_map(|(end, plural)| word.strip_suffix(end).map(|stem| format!("{stem}{plural}")));
    found.unwrap_or_else(|| format!("{word}s"))
}

#[cfg(test)]
mod tests {
    use super::plural;

    #[test]
    fn plurals_of_kinds() {
        for (word, expected) in [
            ("memcached", "memcacheds"),
            ("policy", "policies"),
            ("gateway", "gateways"),
            ("redis", "redis"),
            ("index", "indices"),
            ("mesh", "meshes"),
            ("class", "classes"),
            ("status", "statuses"),
            ("series", "series"),
            ("knife", "knives"),
        ] {
            assert_eq!(plural(word), expected);
        }
    }
}
