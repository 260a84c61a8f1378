//! Metrics of page views that experiments compare: their names and their order.
//!
//! A server computes the values from a [`Beacon`](super::Beacon), a store keeps them, and reports compare them. Absent: the values.
//!
//! Source: docs/experiments.md.

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

/// Number of [`VisitMetric::ALL`].
pub const VISIT_METRICS: usize = VisitMetric::ALL.len();

impl VisitMetric {
    /// Metrics in the order of the values of a page view.
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

    /// Finds a metric by its name; `None` if there is no such metric.
    #[must_use]
    pub fn from_name(name: impl AsRef<[u8]>) -> Option<Self> {
        let is_named = |metric: &Self| metric.name().as_bytes() == name.as_ref();
        Self::ALL.into_iter().find(is_named)
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
        }
        for name in ["", "Load", "load_us", "load "] {
            assert_eq!(VisitMetric::from_name(name), None, "{name}");
        }
    }
}
