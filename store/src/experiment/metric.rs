//! Metrics of page views.

/// Metric of a page view. Times are in microseconds since the start of the navigation, unless they are durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VisitMetric {
    /// Duration of the name lookup.
    Dns,
    /// Duration of the TCP handshake.
    Connect,
    /// Duration of the TLS handshake.
    Tls,
    /// First byte of the page.
    FirstByte,
    /// Last byte of the page.
    Response,
    /// End of the event `DOMContentLoaded`.
    DomContentLoaded,
    /// End of the event `load`.
    #[default]
    Load,
    /// First contentful paint.
    FirstContentfulPaint,
    /// Largest contentful paint.
    LargestContentfulPaint,
    /// Duration: interaction to next paint.
    InteractionToNextPaint,
    /// Cumulative layout shift, in thousandths.
    LayoutShift,
    /// End of the last static file from the experiment's host.
    Files,
}

/// Number of metrics.
pub const VISIT_METRICS: usize = VisitMetric::ALL.len();

impl VisitMetric {
    /// Metrics by their place in [`Visit::values`](crate::Visit::values).
    pub const ALL: [Self; 12] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::FirstByte,
        Self::Response,
        Self::DomContentLoaded,
        Self::Load,
        Self::FirstContentfulPaint,
        Self::LargestContentfulPaint,
        Self::InteractionToNextPaint,
        Self::LayoutShift,
        Self::Files,
    ];

    /// Name in the configuration, the store and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::Response => "response",
            Self::DomContentLoaded => "dom_content_loaded",
            Self::Load => "load",
            Self::FirstContentfulPaint => "first_contentful_paint",
            Self::LargestContentfulPaint => "largest_contentful_paint",
            Self::InteractionToNextPaint => "interaction_to_next_paint",
            Self::LayoutShift => "layout_shift",
            Self::Files => "files",
        }
    }

    /// Finds a metric by its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Column of a metric in the tables of page views.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::LayoutShift => "layout_shift",
            Self::Dns => "dns_us",
            Self::Connect => "connect_us",
            Self::Tls => "tls_us",
            Self::FirstByte => "first_byte_us",
            Self::Response => "response_us",
            Self::DomContentLoaded => "dom_content_loaded_us",
            Self::Load => "load_us",
            Self::FirstContentfulPaint => "first_contentful_paint_us",
            Self::LargestContentfulPaint => "largest_contentful_paint_us",
            Self::InteractionToNextPaint => "interaction_to_next_paint_us",
            Self::Files => "files_us",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_by_name() {
        for (place, metric) in VisitMetric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, place);
            assert_eq!(VisitMetric::from_name(metric.name()), Some(metric));
            assert!(metric.column().starts_with(metric.name()));
        }
        for name in ["", "Load", "load_us", "load "] {
            assert_eq!(VisitMetric::from_name(name), None, "{name}");
        }
    }
}
