//! A picture of differences: the mean of each arm against that of HTTP/1.1, with its interval.

use std::fmt::Write as _;

use super::ARMS;
use super::figures::Cell;

/// The picture of a page, SVG.
pub(crate) fn differences(files: usize, cells: &[&Cell]) -> String {
    let rows: usize = cells.len() * (ARMS.len() - 1);
    let bottom = TOP + rows as f64 * ROW + cells.len() as f64 * GAP;
    let height = bottom + 44.0;
    let all = cells.iter().flat_map(|cell| &cell.arms);
    let ends = all.filter_map(|arm| Some(arm.differences?[0].interval));
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), one| {
        (low.min(one.low), high.max(one.high))
    });
    let (low, high) = (
        (low * 10.0).floor() / 10.0,
        ((high * 10.0).ceil() / 10.0).max(0.1),
    );
    let x = |share: f64| LEFT + (share - low) / (high - low) * (RIGHT - LEFT);
    let title =
        format!("Time to the last of {files} files against HTTP/1.1: means with intervals at 95 %");
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         fill=\"{SOFT}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"20\" fill=\"#1f2328\" font-size=\"13\">{title}</text>\n"
    );
    axis(&mut out, (low, high), bottom, x);
    let mut y = TOP;
    for cell in cells {
        let name = format!("{} ms, {} lost", cell.round_trip.as_millis(), cell.loss);
        let middle = y + ROW * (ARMS.len() - 1) as f64 / 2.0 + 4.0;
        let _ = writeln!(out, "<text x=\"12\" y=\"{middle:.1}\">{name}</text>");
        for ((arm, protocol), colour) in cell.arms.iter().zip(ARMS).zip(COLOURS).skip(1) {
            let Some([found, ..]) = arm.differences else {
                continue;
            };
            let centre = y + ROW / 2.0;
            let (from, to) = (x(found.interval.low), x(found.interval.high));
            let at = x(found.estimate);
            let label = format!("{} {:+.1}%", protocol.name(), found.estimate * 100.0);
            // A text to the right of an interval that ends near the edge would leave the picture.
            let (text_x, anchor) = if to > RIGHT - LABEL {
                (from - 8.0, "end")
            } else {
                (to + 8.0, "start")
            };
            let _ = writeln!(
                out,
                "<path d=\"M{from:.1} {centre:.1}H{to:.1}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{centre:.1}\" r=\"5\" fill=\"{colour}\"/>\
                 <text x=\"{text_x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
                centre + 4.0
            );
            y += ROW;
        }
        y += GAP;
    }
    out += "</svg>\n";
    out
}

/// Lines of the axis with their shares, and the line of no difference.
fn axis(out: &mut String, (low, high): (f64, f64), bottom: f64, x: impl Fn(f64) -> f64) {
    let step = if high - low > 1.0 { 0.25 } else { 0.1 };
    let mut share = (low / step).ceil() * step;
    while share <= high + 1e-9 {
        let at = x(share);
        let colour = if share.abs() < 1e-9 {
            "#57606a"
        } else {
            "#d0d7de"
        };
        // Sums of steps may be just below 0.
        let percent = match (share * 100.0).round() {
            0.0 => "0%".to_owned(),
            percent => format!("{percent:+.0}%"),
        };
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {:.1}V{bottom:.1}\" stroke=\"{colour}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{percent}</text>",
            TOP - 6.0,
            bottom + 16.0,
        );
        share += step;
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{0:.1}\">faster</text><text x=\"{RIGHT}\" y=\"{0:.1}\" text-anchor=\"end\">slower</text>",
        bottom + 34.0
    );
}

const WIDTH: f64 = 720.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 42.0;
/// Height of the row of an arm, and the space after a cell.
const ROW: f64 = 20.0;
const GAP: f64 = 12.0;
/// Room for the text beside an interval.
const LABEL: f64 = 120.0;
const SOFT: &str = "#57606a";
/// Colours of arms, those of the dashboard's series.
const COLOURS: [&str; 3] = ["#57606a", "#b3480a", "#0b62c4"];
