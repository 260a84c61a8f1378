//! Settings as texts of a store, and the summary of an experiment.

use super::types::{ExperimentSettings, ExperimentSummary};
use engines::beacon::VisitMetric;

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

/// Reads metrics. Metrics of a later version of this program are left out.
pub(crate) fn metrics_of(text: &str) -> Vec<VisitMetric> {
    text.split(' ').filter_map(VisitMetric::from_name).collect()
}

/// Summary of an experiment from all its stored settings, with their times in seconds, and from its arms. Settings
/// are in the order of storage, and arms in any. Times after `now_s` are from a wrong clock.
pub(crate) fn summary(
    name: String,
    settings: Vec<(u64, ExperimentSettings)>,
    mut arms: Vec<StoredArm>,
    now_s: u64,
) -> ExperimentSummary {
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
    let first_s = arms.iter().map(|arm| arm.first_ms / 1000).min();
    let since_s = since_s(&settings, current, first_s, now_s);
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

/// Returns the time since which arms and weights are the current ones; 0 without settings.
fn since_s(
    settings: &[(u64, ExperimentSettings)],
    current: &[(String, u32)],
    first_s: Option<u64>,
    now_s: u64,
) -> u64 {
    let rows = settings.iter().rev();
    let same = rows.take_while(|(_, settings)| settings.arms == current);
    let (earlier, same) = settings.split_at(settings.len() - same.count());
    if same.is_empty() {
        return 0;
    }
    let times = |rows: &[(u64, ExperimentSettings)]| {
        let times = rows.iter().map(|(since_s, _)| *since_s);
        times
            .filter(|since_s| *since_s <= now_s)
            .collect::<Vec<_>>()
    };
    let since_s = times(same).first().copied().unwrap_or(now_s);
    match times(earlier).into_iter().max() {
        // A clock may have gone back.
        Some(earlier_s) => since_s.max(earlier_s),
        None if !earlier.is_empty() => since_s,
        // A server takes requests before its store is open, and settings have the time of the store.
        None => since_s.min(first_s.unwrap_or(since_s)),
    }
}

/// Returns the place of an arm; `None` for the empty name.
pub(crate) fn place_of(arms: &[String], name: &str) -> Option<usize> {
    arms.iter().position(|arm| arm == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100;

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
            summary("spdy".to_owned(), rows.collect(), Vec::new(), NOW)
        };
        assert_eq!(rows(&[]).since_s, 0);
        assert_eq!(rows(&[(5, old, 1)]).since_s, 5);
        // A change of the share leaves the weights unchanged.
        let found = rows(&[(5, old, 1), (10, new, 1), (20, new, 1), (30, new, 2)]);
        assert_eq!(found.since_s, 10);
        assert_eq!(found.settings, Some(settings(new, 2)));
        let found = rows(&[(5, new, 1), (10, old, 1), (20, new, 1)]);
        assert_eq!(found.since_s, 20);
    }

    /// The settings in force are the last stored ones, regardless of their time.
    #[test]
    fn times_of_wrong_clocks_do_not_count() {
        let later = NOW + 1;
        // Times with the weight of an arm, and the expected time.
        type Case<'a> = (&'a [(u64, u32)], u64);
        let cases: [Case<'_>; 9] = [
            (&[(NOW, 1)], NOW),
            (&[(later, 1)], NOW),
            (&[(5, 1), (later, 2)], NOW),
            (&[(5, 1), (later, 2), (20, 1)], 20),
            (&[(5, 1), (later, 2), (20, 2)], 20),
            (&[(later, 1), (20, 2)], 20),
            // A clock that is late.
            (&[(50, 1), (5, 2)], 50),
            (&[(50, 1), (5, 1)], 50),
            (&[(50, 1), (50, 2)], 50),
        ];
        for (rows, since_s) in cases {
            let all = rows
                .iter()
                .map(|(at_s, weight)| (*at_s, settings(&[("a", *weight)], 1)));
            let found = summary("spdy".to_owned(), all.collect(), Vec::new(), NOW);
            let weight = rows.last().map(|(_, weight)| *weight);
            assert_eq!(found.since_s, since_s, "{rows:?}");
            assert_eq!(found.settings.map(|it| it.arms[0].1), weight, "{rows:?}");
        }
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
            summary("spdy".to_owned(), rows.collect(), vec![seen], NOW).since_s
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
        let found = summary("spdy".to_owned(), rows, arms.clone(), NOW);
        assert_eq!(found.arms, ["c", "b", "a", "x", "z"]);
        assert_eq!(
            (found.first_s, found.last_s, found.views),
            (Some(5), Some(9), 5)
        );
        assert_eq!(place_of(&found.arms, "x"), Some(3));
        assert_eq!(place_of(&found.arms, ""), None);
        let found = summary("spdy".to_owned(), Vec::new(), arms, NOW);
        assert_eq!(
            (found.arms, found.settings),
            (vec!["b".to_owned(), "x".to_owned()], None)
        );
    }
}
