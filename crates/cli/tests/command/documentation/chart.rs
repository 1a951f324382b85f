//! The chart of the README, drawn from the tables of `docs/explanation/benchmarks.md`.

use std::fmt::Write as _;

/// One row: the measured operation, and the values of olmkit and of the peer.
struct Row {
    title: String,
    ours: f64,
    peer: f64,
    unit: &'static str,
    peer_name: &'static str,
}

/// The first number of a cell such as `8.9 ms, 167 MB`.
fn number(cell: &str) -> f64 {
    let digits: String = cell
        .trim()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse().unwrap_or_else(|_| panic!("{cell:?} has no number"))
}

/// The cells of the first row at or below the heading `section` whose first cell is `name`.
fn row<'t>(text: &'t str, section: &str, name: &str) -> Vec<&'t str> {
    let (_, text) = text.split_once(section).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("| {name} |")));
    let line = line.unwrap_or_else(|| panic!("{section} has no row {name}"));
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn rows() -> Vec<Row> {
    let page = test_support::repository("docs/explanation/benchmarks.md");
    let text = std::fs::read_to_string(page).unwrap();
    let read = |title: &str, section, name, columns: (usize, usize), unit, peer_name| {
        let cells = row(&text, section, name);
        Row {
            title: title.to_owned(),
            ours: number(cells[columns.0]),
            peer: number(cells[columns.1]),
            unit,
            peer_name,
        }
    };
    vec![
        read(
            "Validate a bundle",
            "## Validation",
            "one with 120 kB",
            (1, 2),
            "ms",
            "operator-sdk",
        ),
        read("Validate a catalog", "## Catalogs", "`validate`", (1, 2), "ms", "opm"),
        read(
            "Render a catalog",
            "## Catalogs",
            "`render -o json`",
            (1, 2),
            "ms",
            "opm",
        ),
        read(
            "Catalog server memory",
            "`serve` with a prepared index",
            "settled memory",
            (1, 2),
            "MB",
            "opm",
        ),
    ]
}

/// A value with its unit, in seconds from one second on.
fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ms" if value >= 1000.0 => format!("{:.1} s", value / 1000.0),
        "ms" if value < 10.0 => format!("{value:.0} ms"),
        _ => format!("{value:.0} {unit}"),
    }
}

fn chart(text: &str, muted: &str, bar: &str) -> String {
    let rows = rows();
    // Narrow, so that the text is readable on a phone.
    let (left, width) = (0.0, 330.0);
    let height = 8 + rows.len() * 76;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 520 {height}\" width=\"520\" height=\"{height}\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"15\">\n"
    );
    for (index, row) in rows.iter().enumerate() {
        let top = 28 + index * 76;
        let ours = (width * row.ours / row.peer).max(3.0);
        let after = left + 8.0;
        writeln!(
            svg,
            "<text x=\"0\" y=\"{}\" fill=\"{text}\" font-weight=\"600\">{}</text>",
            top - 8,
            row.title
        )
        .unwrap();
        writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{ours:.1}\" height=\"16\" rx=\"2\" fill=\"{bar}\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"{text}\"><tspan font-weight=\"600\">olmkit {}</tspan> · {:.0}× less</text>",
            after + ours,
            top + 13,
            shown(row.ours, row.unit),
            row.peer / row.ours
        )
        .unwrap();
        writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"16\" rx=\"2\" fill=\"{muted}\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"{text}\">{} {}</text>",
            top + 20,
            after + width,
            top + 33,
            row.peer_name,
            shown(row.peer, row.unit)
        )
        .unwrap();
    }
    svg + "</svg>\n"
}

#[test]
fn the_chart_shows_the_benchmarks() {
    super::check("speed-light.svg", &chart("#1f2328", "#d0d7de", "#0969da"));
    super::check("speed-dark.svg", &chart("#e6edf3", "#3d444d", "#4493f8"));
}

/// Rounds the first number of a cell as the README shows it: 195.4 becomes 195, 8.9 stays, 14633 ms becomes 14.6 s.
fn rounded(cell: &str) -> String {
    let value = number(cell);
    let unit = cell
        .trim()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim();
    match unit {
        "ms" if value >= 500.0 => format!("{:.1} s", value / 1000.0),
        "ms" if value < 10.0 => format!("{value:.1} ms"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// The rows with figures in the README's comparison, from the tables of the benchmarks.
fn compared(text: &str) -> Vec<String> {
    let pair = |cell: &str| {
        let (time, memory) = cell.split_once(", ").unwrap();
        format!("{}, {}", rounded(time), rounded(memory))
    };
    let bundle = row(text, "## Validation", "one with 120 kB");
    let catalog = row(text, "## Catalogs", "`validate`");
    let server = row(text, "`serve` with a prepared index", "settled memory");
    let ours = row(text, "| binary | size", "olmkit");
    let theirs = row(text, "| binary | size", "operator-sdk and opm, which it replaces");
    vec![
        format!(
            "| Validate a bundle of 120 kB | {}, {} | {}, {} |",
            rounded(bundle[1]),
            rounded(bundle[4]),
            rounded(bundle[2]),
            rounded(bundle[5])
        ),
        format!(
            "| Validate a catalog with 300 packages | {} | {} |",
            pair(catalog[1]),
            pair(catalog[2])
        ),
        format!(
            "| Catalog server with a prepared index | {} | {} |",
            rounded(server[1]),
            rounded(server[2])
        ),
        format!("| Binaries | {} | {} |", rounded(ours[1]), rounded(theirs[1])),
    ]
}

#[test]
fn the_comparison_of_the_readme_shows_the_benchmarks() {
    let read = |file| std::fs::read_to_string(test_support::repository(file)).unwrap();
    let readme = read("README.md");
    for row in compared(&read("docs/explanation/benchmarks.md")) {
        assert!(readme.lines().any(|line| line == row), "README.md lacks the row\n{row}");
    }
}
