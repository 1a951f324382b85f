//! Reads one JSON object a line and prints the reasons why the API server rejects it, one JSON list a line.
//! `dev/mutate-objects.py` runs this program.

use std::io::{BufRead as _, Write as _};

use olmkit::admission::{check_csv, check_object};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let object: serde_json::Value = serde_json::from_str(&line?)?;
        let found = if object.get("kind").is_some_and(|kind| kind == "ClusterServiceVersion") {
            check_csv(&object)
        } else {
            check_object(&object)
        };
        let shown: Vec<_> = found
            .iter()
            .map(|rejection| (&rejection.pointer, &rejection.message))
            .collect();
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
    }
    Ok(())
}
