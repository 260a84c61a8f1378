//! Columns of the metrics of page views.

use engines::beacon::{VISIT_METRICS, VisitMetric};

/// Columns in the tables of page views, in the order of [`VisitMetric::ALL`].
pub(crate) const METRIC_COLUMNS: [&str; VISIT_METRICS] = [
    "dns_us",
    "connect_us",
    "tls_us",
    "first_byte_us",
    "response_us",
    "dom_content_loaded_us",
    "load_us",
    "first_contentful_paint_us",
    "largest_contentful_paint_us",
    "interaction_to_next_paint_us",
    "layout_shift",
    "files_us",
];

/// Returns the column of a metric.
pub(crate) fn column(metric: VisitMetric) -> &'static str {
    METRIC_COLUMNS[metric as usize]
}

#[test]
fn columns_begin_with_the_name_of_their_metric() {
    for metric in VisitMetric::ALL {
        assert!(column(metric).starts_with(metric.name()));
    }
}
