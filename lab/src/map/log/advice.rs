//! Warnings about fields that logs lack, and formats that have them.

use super::detect::directive;
use super::report::Report;
use super::tally::Counts;

/// Sentences about damaged lines and about samples that mislead.
#[must_use]
pub fn warnings(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    let counts = &report.counts;
    if counts.damaged > 0 {
        all.push(format!(
            "{} of {} lines are damaged and were skipped{}",
            counts.damaged,
            counts.lines,
            first(report).unwrap_or_default()
        ));
    }
    all.extend(report.broken.iter().cloned());
    if counts.proxied > 0 {
        all.push(format!(
            "{} round-trip times were left out: the connection was that of a proxy, not of the client",
            counts.proxied
        ));
    }
    if counts.smoothed > 0 {
        let share = match counts.minimum {
            0 => "all round-trip times are".to_owned(),
            _ => format!("{} round-trip times are", counts.smoothed),
        };
        all.push(format!(
            "{share} of $tcpinfo_rtt, which is biased: clients that delay acknowledgements raise it (50 ms were measured as 204 ms). \
             firstbyte logs the minimum, which they do not raise: {} With nginx, the first request of a connection has the least bias: {}",
            directive("min_rtt"),
            directive("rtt")
        ));
    }
    all.extend(unnumbered(counts));
    if counts.minimum + counts.smoothed + counts.proxied == 0 && counts.usable() > 0 {
        all.push(format!(
            "the log has no round-trip times, so requests alone are counted. With nginx: {} With firstbyte: {}",
            directive("rtt"),
            directive("min_rtt")
        ));
    }
    all
}

/// A sentence about samples of lines without `$connection_requests`.
fn unnumbered(counts: &Counts) -> Option<String> {
    let samples = counts.minimum + counts.smoothed;
    let lacks = match counts.unnumbered {
        0 => return None,
        all if all == samples => "the log has no $connection_requests".to_owned(),
        some => format!("{some} round-trip times have no $connection_requests"),
    };
    Some(match counts.smoothed {
        0 => format!("{lacks}: a connection has as many samples as requests"),
        _ => format!("{lacks}, so each request counts, and $tcpinfo_rtt rises with their number"),
    })
}

/// The place of the first damaged line, its fault and its beginning.
fn first(report: &Report) -> Option<String> {
    let damaged = report.counts.first_damaged.as_ref()?;
    let name = report.inputs.get(damaged.input)?;
    let text = String::from_utf8_lossy(&damaged.text);
    let (line, why) = (damaged.line, damaged.fault.reason());
    Some(format!("; the first is {name}:{line}: {why}: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::log::{Damaged, Fault};

    fn of(counts: Counts, unnumbered: u64) -> Vec<String> {
        warnings(&Report {
            counts: Counts {
                unnumbered,
                ..counts
            },
            inputs: vec!["a.log".to_owned()],
            ..Report::default()
        })
    }

    fn has(all: &[String], words: &[&str]) {
        assert_eq!(all.len(), words.len(), "{all:?}");
        for (warning, word) in all.iter().zip(words) {
            assert!(warning.contains(word), "{word}: {warning}");
        }
    }

    #[test]
    fn biased_times_are_warned_of_with_both_formats() {
        let counts = |smoothed, minimum| Counts {
            lines: 10,
            smoothed,
            minimum,
            ..Counts::default()
        };
        has(
            &of(counts(5, 0), 0),
            &["all round-trip times are of $tcpinfo_rtt"],
        );
        has(&of(counts(5, 5), 0), &["5 round-trip times are"]);
        let both = of(counts(5, 0), 5);
        has(
            &both,
            &["$tcpinfo_min_rtt requests=", "each request counts"],
        );
        assert!(both[0].contains("rtt=$tcpinfo_rtt requests="), "{both:?}");
        has(
            &of(counts(0, 5), 5),
            &["the log has no $connection_requests: a connection has as many samples as requests"],
        );
        has(
            &of(counts(0, 5), 4),
            &["4 round-trip times have no $connection_requests: a connection"],
        );
        has(&of(counts(0, 5), 0), &[]);
        let none = of(counts(0, 0), 0);
        has(&none, &["requests alone are counted"]);
        assert!(none[0].contains("$tcpinfo_rtt") && none[0].contains("$tcpinfo_min_rtt"));
    }

    #[test]
    fn damaged_lines_are_reported_with_the_first() {
        let counts = Counts {
            lines: 10,
            damaged: 2,
            minimum: 1,
            first_damaged: Some(Damaged {
                input: 0,
                line: 7,
                fault: Fault::Form,
                text: b"\x1b[2J\xff".to_vec(),
            }),
            ..Counts::default()
        };
        let expected = "2 of 10 lines are damaged and were skipped; the first is a.log:7: it does not have the format: \"\\u{1b}[2J\u{fffd}\"";
        assert_eq!(of(counts, 0), [expected]);
    }
}
