//! Tables of docs/does-it-help.md, and their place in it.

use std::fmt::Write as _;

use lab::stats::Estimate;

use super::figures::{Arm, Cell};
use super::{ARMS, FILES};

/// A table for each page.
pub(crate) fn tables(cells: &[Cell]) -> String {
    let mut out = String::new();
    for files in FILES {
        let of_page: Vec<&Cell> = cells.iter().filter(|cell| cell.files == files).collect();
        if of_page.is_empty() {
            continue;
        }
        let _ = write!(out, "\n### A page of {files} files\n\n{HEAD}");
        for cell in of_page {
            for (arm, protocol) in cell.arms.iter().zip(ARMS) {
                let ms = cell.round_trip.as_millis();
                let _ = writeln!(
                    out,
                    "| {ms} ms | {} | {} | {} |",
                    cell.loss,
                    protocol.name(),
                    row(arm)
                );
            }
        }
    }
    let blocks = cells.iter().map(|cell| cell.blocks).min().unwrap_or(0);
    let void: usize = cells.iter().map(|cell| cell.void).sum();
    let congestion = cells.first().map_or("", |cell| cell.congestion_control);
    let _ = writeln!(
        out,
        "\nAt least {blocks} visits of each arm in each cell; {void} blocks of visits were left out because a link was late. \
         Congestion control: {congestion}."
    );
    out
}

fn row(arm: &Arm) -> String {
    let differences = match arm.differences {
        None => ["control"; 3].map(str::to_owned),
        Some(all) => all.map(|found| {
            let [value, low, high] =
                [found.estimate, found.interval.low, found.interval.high].map(percent);
            format!("{value} ({low} to {high})")
        }),
    };
    let times = [&arm.mean, &arm.median, &arm.p80].map(time);
    format!(
        "{} | {} | {:.1} | {:.2} ms",
        times.join(" | "),
        differences.join(" | "),
        arm.connections.value,
        arm.cpu_ms
    )
}

fn time(found: &Estimate) -> String {
    let end = |ms: f64| match ms.is_finite() {
        true => format!("{ms:.0}"),
        false => "none".to_owned(),
    };
    format!(
        "{:.0} ({} to {})",
        found.value,
        end(found.low),
        end(found.high)
    )
}

fn percent(share: f64) -> String {
    match share.is_finite() {
        true => format!("{:+.1}%", share * 100.0),
        false => "none".to_owned(),
    }
}

/// The document with other tables between its marks.
///
/// # Panics
/// A mark is missing.
pub(crate) fn replaced(text: &str, tables: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).expect("the mark of the beginning");
    let (_, after) = rest.split_once(END).expect("the mark of the end");
    format!("{before}{BEGIN}\n{tables}\n{END}{after}")
}

const BEGIN: &str = "<!-- begin of figures: cargo test, does_it_help -->";
const END: &str = "<!-- end of figures -->";
const HEAD: &str = "\
| round trip | loss | files over | mean, ms | median, ms | 80th percentile, ms | mean, change | median, change | 80th percentile, change | connections | CPU of the server |
|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|
";

#[test]
fn tables_are_replaced_between_their_marks() {
    let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
    let found = replaced(&text, "new");
    assert_eq!(found, format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
    assert_eq!(replaced(&found, "new"), found);
}
