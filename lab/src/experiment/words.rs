//! Numbers and names in sentences.

use store::VisitMetric;

use super::report::Change;

/// Writes a number with commas between thousands: `12,345`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a number of things: `1 user`, `12,345 users`.
pub(super) fn quantity(number: u64, name: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {name}{plural}", count(number))
}

/// Writes a size without its sign: `0.62 %`, `4.8 %`, `120 %`.
pub(super) fn percent(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size < 0.995 => format!("{size:.2} %"),
        _ if size < 99.95 => format!("{size:.1} %"),
        _ if size < 1e9 => format!("{} %", count(size.round() as u64)),
        _ => format!("{size:.0e} %"),
    }
}

/// Writes a value of a metric with its unit.
pub(super) fn value(metric: VisitMetric, value: f64) -> String {
    match unit(metric) {
        "ms" => milliseconds(value),
        _ => format!("{value:.3}"),
    }
}

fn milliseconds(ms: f64) -> String {
    match ms.abs() {
        size if size < 9.995 => format!("{ms:.2} ms"),
        size if size < 99.95 => format!("{ms:.1} ms"),
        size if size < 99_999.5 => format!("{} ms", count(ms.round().max(0.0) as u64)),
        _ => format!("{} s", count((ms / 1000.0).round().max(0.0) as u64)),
    }
}

/// Unit of a metric in reports: `ms`; `1` for layout shift.
pub(super) fn unit(metric: VisitMetric) -> &'static str {
    match metric {
        VisitMetric::LayoutShift => "1",
        _ => "ms",
    }
}

/// Name of a metric within a sentence.
pub fn label(metric: VisitMetric) -> &'static str {
    match metric {
        VisitMetric::Dns => "DNS lookup",
        VisitMetric::Connect => "TCP connect",
        VisitMetric::Tls => "TLS handshake",
        VisitMetric::FirstByte => "first byte",
        VisitMetric::Response => "response",
        VisitMetric::DomContentLoaded => "DOM content loaded",
        VisitMetric::Load => "page load",
        VisitMetric::FirstContentfulPaint => "first contentful paint",
        VisitMetric::LargestContentfulPaint => "largest contentful paint",
        VisitMetric::InteractionToNextPaint => "interaction to next paint",
        VisitMetric::LayoutShift => "layout shift",
        VisitMetric::Files => "last static file",
    }
}

/// Adjective of a change: `faster` and `slower`, for layout shift `lower` and `higher`.
pub(super) fn direction(metric: VisitMetric, change: f64) -> &'static str {
    match (unit(metric), change < 0.0) {
        ("ms", true) => "faster",
        ("ms", false) => "slower",
        (_, true) => "lower",
        (_, false) => "higher",
    }
}

/// Writes a change with its direction: `4.8 % faster`.
pub(super) fn change(metric: VisitMetric, change: f64) -> String {
    format!("{} {}", percent(change), direction(metric, change))
}

/// Writes an interval: `2.1 % to 7.5 %` if its ends have one direction, else `1.2 % faster to 2.3 % slower`. The direction of
/// the first form is that of [`change`].
pub(super) fn range(metric: VisitMetric, found: &Change) -> String {
    let (low, high) = (found.low, found.high);
    // No value can fall by more than 100 %.
    match (low > -100.0, high.is_finite()) {
        (true, true) if low > 0.0 => format!("{} to {}", percent(low), percent(high)),
        (true, true) if high < 0.0 => format!("{} to {}", percent(high), percent(low)),
        (true, true) => format!("{} to {}", change(metric, low), change(metric, high)),
        (true, false) if low > 0.0 => format!("{} or more", percent(low)),
        (false, true) if high < 0.0 => format!("{} or more", percent(high)),
        (true, false) => format!("from {} on, without an upper limit", change(metric, low)),
        (false, true) => format!("up to {}, without a lower limit", change(metric, high)),
        (false, false) => "too few users".to_owned(),
    }
}

/// Writes an expected time: `about 5 hours`, `about 12 days`, `more than two years`.
pub(super) fn days(days: f64) -> String {
    match days {
        _ if !days.is_finite() || days > DAYS_MAX => "more than two years".to_owned(),
        _ if days < 2.0 / 24.0 => "about an hour".to_owned(),
        _ if days < 2.0 => format!("about {:.0} hours", (days * 24.0).ceil()),
        _ => format!("about {} days", count(days.ceil() as u64)),
    }
}

/// Joins parts: `a`, `a and b`, `a, b and c`.
pub(super) fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Longest expected time that is written as a number, days.
const DAYS_MAX: f64 = 730.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [quantity(1, "user"), quantity(2, "user")],
            ["1 user", "2 users"]
        );
        let all = [
            0.0, -0.618, 0.994, 0.996, -4.84, 99.94, 99.96, 12_345.0, 1e12,
        ]
        .map(percent);
        let wanted = [
            "0.00 %", "0.62 %", "0.99 %", "1.0 %", "4.8 %", "99.9 %", "100 %", "12,345 %", "1e12 %",
        ];
        assert_eq!(all, wanted);
        let all =
            [0.456, 9.99, 12.34, 1050.4, 99_999.0, 1e6].map(|ms| value(VisitMetric::Load, ms));
        assert_eq!(
            all,
            [
                "0.46 ms",
                "9.99 ms",
                "12.3 ms",
                "1,050 ms",
                "99,999 ms",
                "1,000 s"
            ]
        );
        assert_eq!(value(VisitMetric::LayoutShift, 0.1234), "0.123");
    }

    #[test]
    fn intervals_name_their_directions() {
        let of = |low: f64, high: f64| {
            range(
                VisitMetric::Load,
                &Change {
                    estimate: 0.0,
                    low,
                    high,
                },
            )
        };
        assert_eq!(of(2.1, 7.5), "2.1 % to 7.5 %");
        assert_eq!(of(-7.5, -2.1), "2.1 % to 7.5 %");
        assert_eq!(of(-1.2, 2.3), "1.2 % faster to 2.3 % slower");
        let infinite = f64::INFINITY;
        assert_eq!(of(2.1, infinite), "2.1 % or more");
        assert_eq!(of(-100.0, -1.0), "1.0 % or more");
        assert_eq!(
            of(-1.2, infinite),
            "from 1.2 % faster on, without an upper limit"
        );
        assert_eq!(of(-100.0, 1.0), "up to 1.0 % slower, without a lower limit");
        assert_eq!(of(-100.0, infinite), "too few users");
        let shift = Change {
            estimate: 0.0,
            low: -1.0,
            high: 1.5,
        };
        assert_eq!(
            range(VisitMetric::LayoutShift, &shift),
            "1.0 % lower to 1.5 % higher"
        );
    }

    #[test]
    fn waits_are_rounded_up() {
        let all = [0.01, 0.1, 1.99, 2.0, 12.1, 730.0, 730.1, f64::INFINITY].map(days);
        let wanted = [
            "about an hour",
            "about 3 hours",
            "about 48 hours",
            "about 2 days",
            "about 13 days",
            "about 730 days",
            "more than two years",
            "more than two years",
        ];
        assert_eq!(all, wanted);
        let parts = |n: usize| joined(&vec!["a".to_owned(); n]);
        assert_eq!(
            [parts(0), parts(1), parts(2), parts(3)],
            ["", "a", "a and a", "a, a and a"]
        );
    }
}
