//! ICON: the icon that consoles show for the operator.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::diagnostics::{Origin, Severity, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, field};

define_rules! {
    ICON_1 = {
        id: "ICON-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The icon should be an image of the declared media type.",
        why: "Consoles show a broken image.",
        bad: "mediatype: image/png   # the data is SVG",
        good: "mediatype: image/svg+xml",
        since: "0.1.0",
    }
}

/// First bytes of the image formats that consoles support, and their media types. SVG is text and is detected by its
/// element.
const FORMATS: [(&[u8], &str); 3] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
];

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = Vec::new();
    for (at, icon) in csv.list("/spec/icon").iter().enumerate() {
        let data = without_whitespace(field(icon, "base64data"));
        let declared = field(icon, "mediatype");
        // HUB-9 reports missing parts.
        if data.is_empty() || declared.is_empty() {
            continue;
        }
        let fault = match STANDARD.decode(data.as_bytes()) {
            Err(error) => Some((format!("the icon is not valid base64: {error}"), "base64data")),
            Ok(bytes) => match media_type(&bytes) {
                Some(found) if found == declared => None,
                // Browsers recognise these three by their first bytes, whatever their declared type is.
                Some(found) if is_raster(found) && is_raster(declared) => None,
                Some(found) => Some((format!("the icon is {found}, not {declared}"), "mediatype")),
                None => Some((
                    "the icon is not a PNG, JPEG, GIF or SVG image".to_string(),
                    "base64data",
                )),
            },
        };
        if let Some((message, part)) = fault {
            findings.push(
                Checked::new(&ICON_1, message)
                    .at(csv.object, &format!("/spec/icon/{at}/{part}"))
                    .hint("put `base64 -w0 FILE` of a PNG, JPEG, GIF or SVG file into `base64data`, and its type into `mediatype`"),
            );
        }
    }
    findings
}

/// A text without whitespace. Most icons have none, and a test of the whole text is faster than a search by character.
fn without_whitespace(text: &str) -> Cow<'_, str> {
    let has_others = text.bytes().fold(false, |found, byte| found | !byte.is_ascii_graphic());
    if has_others {
        Cow::Owned(text.split_whitespace().collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn is_raster(media_type: &str) -> bool {
    FORMATS.iter().any(|(_, known)| *known == media_type)
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let known = FORMATS.iter().find(|(head, _)| bytes.starts_with(head));
    if let Some((_, media_type)) = known {
        return Some(media_type);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    text.contains("<svg").then_some("image/svg+xml")
}
