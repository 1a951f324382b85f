//! ICON: the picture that consoles show for the operator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::checked::Checked;
use super::super::context::{Context, field};
use super::warning;

/// First bytes of the pictures that consoles show, and their media types. SVG is text and is looked for by its element.
const PICTURES: [(&[u8], &str); 3] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
];

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = Vec::new();
    for (at, icon) in csv.list("/spec/icon").iter().enumerate() {
        let data: String = field(icon, "base64data").split_whitespace().collect();
        let said = field(icon, "mediatype");
        // Missing parts are told as HUB-9.
        if data.is_empty() || said.is_empty() {
            continue;
        }
        let fault = match STANDARD.decode(data) {
            Err(error) => Some((format!("the icon is no base64: {error}"), "base64data")),
            Ok(bytes) => match media_type(&bytes) {
                Some(found) if found == said => None,
                Some(found) => Some((format!("the icon is {found}, not {said}"), "mediatype")),
                None => Some(("the icon is no picture that consoles show".to_string(), "base64data")),
            },
        };
        if let Some((message, part)) = fault {
            findings.push(
                warning("ICON-1", message)
                    .at(csv.object, &format!("/spec/icon/{at}/{part}"))
                    .hint("put `base64 -w0 FILE` of a PNG, JPEG, GIF or SVG file into `base64data`, and its type into `mediatype`"),
            );
        }
    }
    findings
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let known = PICTURES.iter().find(|(head, _)| bytes.starts_with(head));
    if let Some((_, media_type)) = known {
        return Some(media_type);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    text.contains("<svg").then_some("image/svg+xml")
}
