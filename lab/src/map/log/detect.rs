//! Formats with names, and the detection of a log's format by its first lines.

use super::format::Format;
use super::line::{Field, JSON, LineFormat};

/// Formats by name: those of nginx and its packages, and both of [`super::advice`]. No line fits two of them.
const NAMED: [(&str, &str, &str); 5] = [
    ("min_rtt", COMBINED, MIN_RTT_SUFFIX),
    ("rtt", COMBINED, RTT_SUFFIX),
    ("combined", COMBINED, ""),
    ("main", COMBINED, " \"$http_x_forwarded_for\""),
    ("common", COMMON, ""),
];

const COMMON: &str =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
const MIN_RTT_SUFFIX: &str = " min_rtt=$tcpinfo_min_rtt requests=$connection_requests";
const RTT_SUFFIX: &str = " rtt=$tcpinfo_rtt requests=$connection_requests";

/// The text of a format with a name.
fn text(name: &str) -> Option<String> {
    let found = NAMED.iter().find(|(own, ..)| *own == name);
    found.map(|(_, begin, suffix)| format!("{begin}{suffix}"))
}

/// Names of all formats, with commas between them.
#[must_use]
pub fn names() -> String {
    let names = NAMED.map(|(name, ..)| name);
    [&names[..], &[JSON]].concat().join(", ")
}

/// The format of a name. `None` if there is no such name.
///
/// # Errors
/// The format lacks the client's field.
#[must_use]
pub fn format_named(name: &str, client: &Field) -> Option<Result<LineFormat, String>> {
    if name == JSON {
        return Some(Ok(LineFormat::json(client)));
    }
    let format = Format::of_option(&text(name)?);
    Some(format.and_then(|format| LineFormat::compile(name, &format, client)))
}

/// The directive `log_format` of a format with a name; empty if there is no such name.
pub(super) fn directive(name: &str) -> String {
    text(name).map_or_else(String::new, |text| format!("log_format {name} '{text}';"))
}

/// The format of most of the first lines. `None` if less than half of them have a known format.
pub(super) fn detect(block: &[u8], client: &Field) -> Option<LineFormat> {
    let mut lines = block.split(|byte| *byte == b'\n');
    let mut sample: Vec<&[u8]> = Vec::new();
    while sample.len() < SAMPLE_LINES
        && let Some(line) = lines.next()
    {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            sample.push(line);
        }
    }
    let candidates = NAMED
        .iter()
        .filter_map(|(name, ..)| format_named(name, client));
    let candidates = candidates.filter_map(Result::ok);
    let candidates = candidates.chain([LineFormat::json(client)]);
    let counted = candidates.map(|format| {
        let read = sample.iter().filter(|line| format.fits(line));
        (read.count(), format)
    });
    let (count, format) = counted.max_by_key(|(count, _)| *count)?;
    (count > 0 && count * 2 >= sample.len()).then_some(format)
}

/// Lines that decide.
const SAMPLE_LINES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612";

    fn detected(text: &str) -> Option<String> {
        detect(text.as_bytes(), &Field::default()).map(|format| format.name)
    }

    #[test]
    fn known_formats_are_detected() {
        let combined = format!("{LINE} \"-\" \"curl\"");
        for (line, name) in [
            (LINE.to_owned(), "common"),
            (combined.clone(), "combined"),
            (format!("{combined} \"-\""), "main"),
            (format!("{combined} rtt=20000 requests=1"), "rtt"),
            (format!("{combined} min_rtt=20000 requests=1"), "min_rtt"),
            (
                "{\"status\":200,\"remote_addr\":\"192.0.2.1\"}".to_owned(),
                "json",
            ),
        ] {
            for end in ["", "\n", "\r\n"] {
                assert_eq!(
                    detected(&format!("{line}{end}")).as_deref(),
                    Some(name),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn half_of_the_lines_must_have_the_format() {
        let lines = |good: usize, bad: usize| {
            let (good, bad) = (format!("{LINE}\n").repeat(good), "x\n".repeat(bad));
            detected(&(bad + "\n" + &good))
        };
        assert_eq!(lines(1, 0).as_deref(), Some("common"));
        assert_eq!(lines(49, 50), None);
        assert_eq!(lines(50, 50).as_deref(), Some("common"));
        // Lines behind the sample are not judged.
        assert_eq!(lines(60, 51), None);
        assert_eq!((lines(0, 5), lines(0, 0)), (None, None));
    }

    #[test]
    fn names_are_those_of_formats() {
        for name in names().split(", ") {
            let format = format_named(name, &Field::default()).expect("it has a name");
            assert_eq!(format.map(|format| format.name), Ok(name.to_owned()));
        }
        assert!(format_named("other", &Field::default()).is_none());
        let client = Field::of_name("http_x_forwarded_for").expect("a name");
        let has_client = |name| format_named(name, &client).expect("it has a name").is_ok();
        assert!(has_client("main") && has_client("json") && !has_client("combined"));
    }

    #[test]
    fn directives_are_of_the_formats() {
        let directive = directive("min_rtt");
        assert!(directive.starts_with("log_format min_rtt '$remote_addr - "));
        assert!(directive.ends_with("requests=$connection_requests';"));
    }
}
