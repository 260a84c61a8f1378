//! Two periods compared, country by country.
//!
//! Connections of one visitor or one hour depend on each other, so intervals over connections would be too narrow. Both periods
//! are cut into parts of equal length, and the medians of parts with the same number are pairs: a paired test on their ratios.
//! If both periods begin at the same time of day, the course of a day is common to a pair and cancels.

use std::collections::BTreeMap;

use store::{Answer, Dimension, Error, Grouping, Histogram};

use super::map::country_name;
use super::view::{Context, Head, UNKNOWN, View};
use crate::map::Times;
use crate::stats::{Comparison, paired_among};
use crate::time::readable;
use crate::web::params::metric;
use crate::web::table::{Cell, Format, Table, real};

/// Histograms of a country: those of both periods by part.
#[derive(Clone, Debug, Default)]
struct Country {
    parts: [Vec<Histogram>; 2],
    connections: [u64; 2],
}

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let params = context.params;
    let periods = [params.before(), params.period()];
    let parts = parts(params.length_s());
    let mut countries: BTreeMap<String, Country> = BTreeMap::new();
    for (side, (from, to)) in periods.into_iter().enumerate() {
        for part in 0..parts {
            let length = to - from;
            let mut query = context.query(Grouping::Dimension(Dimension::Country), params.metric);
            query.from_s = from + length * part / parts;
            query.to_s = from + length * (part + 1) / parts;
            let answer = context.store.answer(&query)?;
            add(&mut countries, side, &answer, part as usize);
        }
    }
    let mut all: Vec<(String, Country)> = countries.into_iter().collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.connections.iter().sum::<u64>()));
    let tested = all
        .iter()
        .filter(|(_, one)| pairs(one).0.len() >= PAIRS_LEAST)
        .count();
    let mut view = View::of(all.iter().map(|(_, one)| one.connections[1]).sum());
    let [before, after] =
        periods.map(|(from, to)| format!("{} to {}", readable(from), readable(to)));
    view.notes
        .push(format!("Before: {before}. After: {after}."));
    let title = format!(
        "Medians compared, {}, ms",
        metric(params.metric).label.to_lowercase()
    );
    let mut table = Table::new("countries", &COLUMNS);
    for (code, one) in &all {
        table.push(row(code, one, tested));
    }
    let section = view.section(&title, None, table);
    section.note = format!(
        "Each period is cut into {parts} parts. A country has a verdict from {PAIRS_LEAST} parts with {PART_LEAST} samples in \
         both periods. The interval of the change is at 99 %. All verdicts together are wrong by chance in one of a hundred pages."
    );
    Ok(view)
}

/// Returns the number of parts: each is a whole number of minutes, and hours if possible.
fn parts(length_s: u64) -> u64 {
    [12, 8, 7, 10, 6, 5]
        .into_iter()
        .find(|parts| length_s.is_multiple_of(parts * 3600))
        .or_else(|| {
            [12, 10, 6, 5]
                .into_iter()
                .find(|parts| length_s.is_multiple_of(parts * 60))
        })
        .unwrap_or(6)
}

fn add(countries: &mut BTreeMap<String, Country>, side: usize, answer: &Answer, part: usize) {
    for group in &answer.groups {
        let one = countries.entry(group.key.clone()).or_default();
        one.connections[side] = one.connections[side].saturating_add(group.totals.connections);
        let parts = &mut one.parts[side];
        if parts.len() <= part {
            parts.resize(part + 1, Histogram::default());
        }
        parts[part].merge(&group.histogram);
    }
}

/// Medians of parts that have enough samples in both periods.
fn pairs(one: &Country) -> (Vec<f64>, Vec<f64>) {
    let [before, after] = &one.parts;
    let both = before.iter().zip(after);
    let enough = both.filter(|(a, b)| a.count() >= PART_LEAST && b.count() >= PART_LEAST);
    let medians =
        |(a, b): (&Histogram, &Histogram)| Some((a.quantile_us(0.5)?, b.quantile_us(0.5)?));
    enough.filter_map(medians).unzip()
}

fn row(code: &str, one: &Country, tested: usize) -> Vec<Cell> {
    let times = one.parts.each_ref().map(|parts| {
        let mut all = Histogram::default();
        parts.iter().for_each(|part| all.merge(part));
        (all.count(), Times::of(&all))
    });
    let [(count_before, before), (count_after, after)] = times;
    let (first, second) = pairs(one);
    let found = match first.len() >= PAIRS_LEAST {
        true => paired_among(&first, &second, tested),
        false => None,
    };
    let median = |times: Option<Times>| Cell::real(times.map(|times| times.median));
    let difference = before.zip(after).map(|(a, b)| b.median - a.median);
    let percent = |ratio: f64| Cell::real(Some((ratio - 1.0) * 100.0));
    let change = found.map_or([Cell::Empty, Cell::Empty, Cell::Empty], |found| {
        [found.ratio.value, found.ratio.low, found.ratio.high].map(percent)
    });
    let name = if code.is_empty() { UNKNOWN } else { code };
    let mut cells = vec![
        Cell::Text(name.to_owned()),
        Cell::Text(country_name(code)),
        Cell::Count(count_before),
        Cell::Count(count_after),
        median(before),
        median(after),
        Cell::real(difference),
    ];
    cells.extend(change);
    cells.push(Cell::Text(verdict(found)));
    cells
}

/// Returns the verdict in words.
fn verdict(found: Option<Comparison>) -> String {
    match found {
        None => "too few samples".to_owned(),
        Some(found) if !found.differs => "no difference beyond chance".to_owned(),
        Some(found) => {
            let percent = (found.ratio.value - 1.0) * 100.0;
            let direction = if percent > 0.0 { "slower" } else { "faster" };
            format!("{} % {direction}", real(percent.abs()))
        }
    }
}

const COLUMNS: [Head; 11] = [
    ("country", "Code", Format::Text),
    ("name", "Country", Format::Text),
    ("samples_before", "Samples before", Format::Count),
    ("samples_after", "after", Format::Count),
    ("median_before_ms", "Median before", Format::Ms),
    ("median_after_ms", "after", Format::Ms),
    ("difference_ms", "Difference ms", Format::Ms),
    ("change_percent", "Change of parts %", Format::Percent),
    ("change_low_percent", "99 % from", Format::Percent),
    ("change_high_percent", "to", Format::Percent),
    ("verdict", "Verdict", Format::Text),
];

/// Pairs of parts below which there is no verdict.
const PAIRS_LEAST: usize = 4;
/// Samples of a part below which its median does not count.
const PART_LEAST: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_minutes() {
        for length in [
            3600,
            6 * 3600,
            24 * 3600,
            7 * 86_400,
            30 * 86_400,
            90 * 86_400,
        ] {
            let parts = parts(length);
            assert!(
                (5..=12).contains(&parts) && length.is_multiple_of(parts * 60),
                "{length}"
            );
        }
        assert_eq!(parts(61), 6);
    }

    /// A country with `samples` times of about `ms` in each of six parts.
    fn country(ms: [u64; 2], samples: u64) -> Country {
        let part = |ms: u64, n: u64| {
            let mut histogram = Histogram::default();
            (0..samples).for_each(|k| histogram.add(ms * 1000 + (n * 7 + k) % 11 * 10));
            histogram
        };
        Country {
            parts: ms.map(|ms| (0..6).map(|n| part(ms, n)).collect()),
            connections: [samples * 6; 2],
        }
    }

    #[test]
    fn verdicts_need_samples_and_differences() {
        let words = |one: &Country| match row("DE", one, 50).last() {
            Some(Cell::Text(text)) => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words(&country([50, 50], 30)), "no difference beyond chance");
        assert!(words(&country([50, 75], 30)).ends_with(" % slower"));
        assert!(words(&country([50, 25], 30)).ends_with(" % faster"));
        assert_eq!(words(&country([50, 75], PART_LEAST - 1)), "too few samples");
        assert!(words(&country([50, 75], PART_LEAST)).ends_with(" % slower"));
        let mut few = country([50, 75], 30);
        few.parts[1].truncate(PAIRS_LEAST - 1);
        assert_eq!(words(&few), "too few samples");
    }
}
