//! Settings as texts of a store, and the summary of an experiment.

use super::metric::VisitMetric;
use super::types::{ExperimentSettings, ExperimentSummary};

/// Page views of one arm in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredArm {
    /// Name; empty for page views before the start.
    pub(crate) name: String,
    pub(crate) views: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

/// Writes arms with their weights as `NAME=WEIGHT`, separated by spaces.
pub(crate) fn arms_text(arms: &[(String, u32)]) -> String {
    let mut text = String::new();
    for (name, weight) in arms {
        if !text.is_empty() {
            text.push(' ');
        }
        for byte in name.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => text.push(byte.into()),
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text.push_str(&format!("={weight}"));
    }
    text
}

/// Reads arms. Unreadable ones are left out.
pub(crate) fn arms_of(text: &str) -> Vec<(String, u32)> {
    let arm = |word: &str| {
        let (name, weight) = word.split_once('=')?;
        Some((name_of(name)?, weight.parse().ok()?))
    };
    text.split(' ').filter_map(arm).collect()
}

fn name_of(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Writes the names of metrics, separated by spaces.
pub(crate) fn metrics_text(metrics: &[VisitMetric]) -> String {
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name()).collect();
    names.join(" ")
}

/// Reads metrics. Those of a later program are left out.
pub(crate) fn metrics_of(text: &str) -> Vec<VisitMetric> {
    text.split(' ').filter_map(VisitMetric::from_name).collect()
}

/// Summary of an experiment from all its stored settings, with their times in seconds, and from its arms. Both may be in any order.
pub(crate) fn summary(
    name: String,
    mut settings: Vec<(u64, ExperimentSettings)>,
    mut arms: Vec<StoredArm>,
) -> ExperimentSummary {
    settings.sort();
    arms.retain(|arm| !arm.name.is_empty());
    let mut names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
    names.extend(
        settings
            .iter()
            .flat_map(|(_, settings)| settings.arms.iter().map(|(name, _)| name.clone())),
    );
    names.sort();
    names.dedup();
    let last = settings.last().map(|(_, settings)| settings.clone());
    let current = last.as_ref().map_or(&[][..], |last| &last.arms);
    // The last ones with these arms and weights.
    let same = settings.iter().rev();
    let same = same.take_while(|(_, settings)| settings.arms == current);
    let (same, first_s) = (
        same.collect::<Vec<_>>(),
        arms.iter().map(|arm| arm.first_ms / 1000).min(),
    );
    let mut since_s = same.last().map_or(0, |(since_s, _)| *since_s);
    if same.len() == settings.len() {
        // A server takes requests before its store is open, and settings have the time of the store.
        since_s = since_s.min(first_s.unwrap_or(since_s));
    }
    names.retain(|name| current.iter().all(|(other, _)| other != name));
    let first = current.iter().map(|(name, _)| name.clone());
    ExperimentSummary {
        name,
        since_s,
        arms: first.chain(names).collect(),
        first_s,
        last_s: arms.iter().map(|arm| arm.last_ms / 1000).max(),
        views: arms.iter().map(|arm| arm.views).sum(),
        settings: last,
    }
}

/// Returns the place of an arm; `None` for the empty name.
pub(crate) fn place_of(arms: &[String], name: &str) -> Option<usize> {
    arms.iter().position(|arm| arm == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arms: &[(&str, u32)], share: u32) -> ExperimentSettings {
        let arms = arms.iter();
        ExperimentSettings {
            name: "spdy".to_owned(),
            arms: arms
                .map(|(name, weight)| ((*name).to_owned(), *weight))
                .collect(),
            share,
            ..ExperimentSettings::default()
        }
    }

    #[test]
    fn texts_are_read_back() {
        for arms in [
            &[][..],
            &[("control", 50), ("fast", 10_000)],
            &[
                ("it's", 1),
                ("a b=c%", u32::MAX),
                ("\u{e4}\n\0", 0),
                ("", 3),
            ],
        ] {
            let arms = settings(arms, 0).arms;
            assert_eq!(arms_of(&arms_text(&arms)), arms);
        }
        assert_eq!(
            arms_text(&settings(&[("a", 1), ("b c", 2)], 0).arms),
            "a=1 b%20c=2"
        );
        for text in [
            "a",
            "a=",
            "a=-1",
            "%=1",
            "%4=1",
            "%zz=1",
            "%ff=1",
            "\u{e4}%\u{e4}=1",
        ] {
            assert_eq!(arms_of(text), [], "{text}");
        }
        let metrics = VisitMetric::ALL.to_vec();
        assert_eq!(metrics_of(&metrics_text(&metrics)), metrics);
        assert_eq!(metrics_of("later load"), [VisitMetric::Load]);
        assert_eq!(metrics_of(""), []);
    }

    #[test]
    fn weights_count_since_their_last_change() {
        let (old, new) = (&[("a", 50), ("b", 50)][..], &[("a", 10), ("b", 90)][..]);
        type Change<'a> = (u64, &'a [(&'a str, u32)], u32);
        let rows = |changes: &[Change<'_>]| {
            let changes = changes.iter();
            let rows = changes.map(|(at_s, arms, share)| (*at_s, settings(arms, *share)));
            summary("spdy".to_owned(), rows.collect(), Vec::new())
        };
        assert_eq!(rows(&[]).since_s, 0);
        assert_eq!(rows(&[(5, old, 1)]).since_s, 5);
        // Another share leaves the weights as they are.
        let found = rows(&[(30, new, 2), (10, new, 1), (5, old, 1), (20, new, 1)]);
        assert_eq!(found.since_s, 10);
        assert_eq!(found.settings, Some(settings(new, 2)));
        let found = rows(&[(5, new, 1), (10, old, 1), (20, new, 1)]);
        assert_eq!(found.since_s, 20);
    }

    #[test]
    fn views_before_the_first_settings_count() {
        let arms = &[("a", 50), ("b", 50)][..];
        let since_s = |rows: &[(u64, u32)], first_ms| {
            let rows = rows.iter().map(|(at_s, weight)| {
                let settings = settings(&[("a", 50), ("b", *weight)], 1);
                (*at_s, settings)
            });
            let seen = StoredArm {
                name: arms[0].0.to_owned(),
                views: 1,
                first_ms,
                last_ms: first_ms,
            };
            summary("spdy".to_owned(), rows.collect(), vec![seen]).since_s
        };
        assert_eq!(since_s(&[(10, 50)], 9_999), 9);
        assert_eq!(since_s(&[(10, 50)], 10_000), 10);
        assert_eq!(since_s(&[(10, 50)], 11_000), 10);
        assert_eq!(since_s(&[(10, 50), (20, 50)], 9_999), 9);
        // Other weights end the time before them.
        assert_eq!(since_s(&[(10, 50), (20, 51)], 9_999), 20);
    }

    #[test]
    fn arms_of_the_settings_come_first() {
        let stored = |name: &str, views, first_ms, last_ms| StoredArm {
            name: name.to_owned(),
            views,
            first_ms,
            last_ms,
        };
        let arms = vec![
            stored("x", 3, 5_999, 8_000),
            stored("", 100, 0, 90_000),
            stored("b", 2, 7_000, 9_999),
        ];
        let rows = vec![
            (1, settings(&[("z", 1), ("a", 1)], 1)),
            (2, settings(&[("c", 1), ("b", 1)], 1)),
        ];
        let found = summary("spdy".to_owned(), rows, arms.clone());
        assert_eq!(found.arms, ["c", "b", "a", "x", "z"]);
        assert_eq!(
            (found.first_s, found.last_s, found.views),
            (Some(5), Some(9), 5)
        );
        assert_eq!(place_of(&found.arms, "x"), Some(3));
        assert_eq!(place_of(&found.arms, ""), None);
        let found = summary("spdy".to_owned(), Vec::new(), arms);
        assert_eq!(
            (found.arms, found.settings),
            (vec!["b".to_owned(), "x".to_owned()], None)
        );
    }
}
