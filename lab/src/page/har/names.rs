//! Names of protocols and of kinds of resources, as programs write them.

use crate::page::resource::Kind;

/// Returns the `httpVersion` of a protocol: the text of the status line if the protocol has one.
pub(super) fn http_version(protocol: &str) -> &str {
    match protocol {
        "" => UNKNOWN,
        "http/0.9" => "HTTP/0.9",
        "http/1.0" => "HTTP/1.0",
        "http/1.1" => "HTTP/1.1",
        "h2" => "HTTP/2",
        "h3" => "HTTP/3",
        other => other,
    }
}

/// Returns the protocol of an `httpVersion`, as ALPN names it; empty if unknown.
pub(super) fn protocol(http_version: &str) -> String {
    let name = http_version.trim().to_ascii_lowercase();
    let alpn = match name.as_str() {
        UNKNOWN => "",
        "0.9" => "http/0.9",
        "1.0" => "http/1.0",
        "1.1" => "http/1.1",
        "2" | "2.0" | "http/2" | "http/2.0" | "http/2+quic" => "h2",
        "3" | "3.0" | "http/3" | "http/3.0" => "h3",
        "spdy" | "http/spdy" => "spdy/3.1",
        // WebPageTest writes the first word of any response here.
        other if other.len() > PROTOCOL_MAX || !other.bytes().all(is_of_name) => "",
        other => other,
    };
    alpn.to_owned()
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/.-_+".contains(&byte)
}

/// Returns the kind of a resource type.
pub(super) fn kind(resource_type: &str) -> Kind {
    match resource_type.to_ascii_lowercase().as_str() {
        "document" | "subdocument" | "html" => Kind::Document,
        "stylesheet" | "css" => Kind::Stylesheet,
        "script" | "js" => Kind::Script,
        "image" => Kind::Image,
        "font" => Kind::Font,
        "media" => Kind::Media,
        "fetch" | "xhr" | "eventsource" | "preflight" => Kind::Fetch,
        _ => Kind::Other,
    }
}

/// Returns the kind of a content type, for archives without resource types.
pub(super) fn kind_of_content(mime_type: &str) -> Kind {
    let essence = mime_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is_font = essence.starts_with("font/") || essence.contains("font");
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Document,
        "text/css" => Kind::Stylesheet,
        "application/json" => Kind::Fetch,
        script if script.ends_with("/javascript") || script.ends_with("/x-javascript") => {
            Kind::Script
        }
        "text/ecmascript" | "application/ecmascript" => Kind::Script,
        image if image.starts_with("image/") => Kind::Image,
        media if media.starts_with("audio/") || media.starts_with("video/") => Kind::Media,
        _ if is_font => Kind::Font,
        _ => Kind::Other,
    }
}

const UNKNOWN: &str = "unknown";
/// The longest name of a protocol.
const PROTOCOL_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_of_other_programs_are_known() {
        for (version, expected) in [
            ("HTTP/1.1", "http/1.1"),
            ("http/1.0", "http/1.0"),
            ("1.1", "http/1.1"),
            ("HTTP/2.0", "h2"),
            ("h2", "h2"),
            ("h3-29", "h3-29"),
            ("spdy/3.1", "spdy/3.1"),
            ("unknown", ""),
            ("us:", ""),
            ("", ""),
        ] {
            assert_eq!(protocol(version), expected, "{version}");
        }
        assert_eq!(protocol(&"a".repeat(32)).len(), 32);
        assert_eq!(protocol(&"a".repeat(33)), "");
        for name in ["", "http/1.1", "h2", "h3", "spdy/3.1", "h2c"] {
            assert_eq!(protocol(http_version(name)), name);
        }
    }

    #[test]
    fn kinds_have_names_that_are_read() {
        for known in [
            Kind::Document,
            Kind::Stylesheet,
            Kind::Script,
            Kind::Image,
            Kind::Font,
            Kind::Media,
            Kind::Fetch,
            Kind::Other,
        ] {
            assert_eq!(kind(known.name()), known);
        }
        assert_eq!(kind_of_content("text/HTML; charset=utf-8"), Kind::Document);
        assert_eq!(kind_of_content("text/javascript"), Kind::Script);
        assert_eq!(kind_of_content("application/x-font-woff"), Kind::Font);
        assert_eq!(kind_of_content("application/octet-stream"), Kind::Other);
    }
}
