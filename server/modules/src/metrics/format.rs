//! Writes metrics as Prometheus text or OpenMetrics, and chooses between the two by `Accept`.
//!
//! Source: Prometheus documentation, "Exposition formats"; OpenMetrics 1.0; RFC 9110 section 12.5.1 for `Accept`.

use std::fmt::Write as _;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricType {
    /// Only rises; its samples end in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Times in buckets.
    Histogram,
    /// Text in labels; its sample ends in `_info`.
    Info,
}

impl Format {
    /// Returns the format that a client prefers; Prometheus text without a preference.
    pub(super) fn chosen(accept: &[u8]) -> Self {
        let (mut text, mut open) = (None, None);
        for range in accept.split(|b| *b == b',') {
            let Ok(range) = std::str::from_utf8(range) else {
                continue;
            };
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut version) = (1.0, None);
            for part in parts {
                match part.split_once('=') {
                    Some(("q" | "Q", value)) => quality = weight(value.trim()).unwrap_or(0.0),
                    Some(("version", value)) => version = Some(value.trim_matches('"').to_owned()),
                    _ => {}
                }
            }
            let chosen = match kind.as_str() {
                "application/openmetrics-text" if version.as_deref().is_none_or(is_1) => &mut open,
                "text/plain" | "text/*" | "*/*" => &mut text,
                _ => continue,
            };
            *chosen = Some(chosen.map_or(quality, |other: f32| other.max(quality)));
        }
        match (text, open) {
            (_, None | Some(..=0.0)) => Self::Prometheus,
            (Some(text), Some(open)) if text > open => Self::Prometheus,
            _ => Self::OpenMetrics,
        }
    }

    /// Its `Content-Type`.
    pub(super) fn media_type(self) -> &'static [u8] {
        match self {
            Self::Prometheus => b"text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => b"application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A weight: digits with a point (RFC 9110, section 12.4.2), no sign and no exponent.
fn weight(text: &str) -> Option<f32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

fn is_1(version: &str) -> bool {
    version == "1.0.0" || version == "1.0"
}

/// Writes a page of metrics.
pub(super) struct Writer {
    format: Format,
    page: String,
}

/// A label and its value, which needs no quoting.
pub(super) type Label<'a> = (&'a str, &'a str);

impl Writer {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            page: String::new(),
        }
    }

    /// Begins a family. Its name has neither `_total` nor `_info`, and ends in its unit if it has one.
    pub(super) fn family(&mut self, name: &str, kind: MetricType, unit: &str, help: &str) {
        let (suffix, kind_name) = match (self.format, kind) {
            (Format::Prometheus, MetricType::Counter) => ("_total", "counter"),
            (Format::Prometheus, MetricType::Info) => ("_info", "gauge"),
            (_, MetricType::Counter) => ("", "counter"),
            (_, MetricType::Gauge) => ("", "gauge"),
            (_, MetricType::Histogram) => ("", "histogram"),
            (_, MetricType::Info) => ("", "info"),
        };
        let _ = writeln!(self.page, "# HELP {name}{suffix} {help}");
        let _ = writeln!(self.page, "# TYPE {name}{suffix} {kind_name}");
        if self.format == Format::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.page, "# UNIT {name} {unit}");
        }
    }

    /// A sample.
    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[Label<'_>],
        value: impl std::fmt::Display,
    ) {
        self.page.push_str(name);
        for (n, (label, text)) in labels.iter().enumerate() {
            let before = if n == 0 { '{' } else { ',' };
            let _ = write!(self.page, "{before}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.page, "{end} {value}");
    }

    /// The page.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.page.push_str("# EOF\n");
        }
        self.page
    }
}

/// Microseconds as seconds.
pub(super) fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_preferred() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            (
                "application/openmetrics-text; version=1.0.0, text/plain;q=0.5",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=0.0.1;q=0.75,*/*;q=0.1",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.2,text/plain;version=0.0.4;q=0.5",
                Format::Prometheus,
            ),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-text;q=+1", Format::Prometheus),
            ("application/openmetrics-text;q=1e0", Format::Prometheus),
            // As sent by Prometheus 2.49 and later.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
              text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
            ("\u{e9};;=,q,;q=", Format::Prometheus),
        ] {
            assert_eq!(Format::chosen(accept.as_bytes()), format, "{accept}");
        }
    }

    #[test]
    fn the_formats_name_a_counter_each_in_its_way() {
        let page = |format| {
            let mut page = Writer::new(format);
            page.family("x_bytes", MetricType::Counter, "bytes", "Bytes.");
            page.sample("x_bytes_total", &[("a", "1"), ("b", "2")], 3);
            page.end()
        };
        assert_eq!(
            page(Format::Prometheus),
            "# HELP x_bytes_total Bytes.\n# TYPE x_bytes_total counter\nx_bytes_total{a=\"1\",b=\"2\"} 3\n"
        );
        assert_eq!(
            page(Format::OpenMetrics),
            "# HELP x_bytes Bytes.\n# TYPE x_bytes counter\n# UNIT x_bytes bytes\n\
             x_bytes_total{a=\"1\",b=\"2\"} 3\n# EOF\n"
        );
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(0), "0.000000");
        assert_eq!(seconds(20_000_202), "20.000202");
    }
}
