//! Import circles of each shipped crate, between files and between folders.
//!
//! A number here may only fall. The test fails if a change makes a circle smaller, until the number is lowered.

use firstbyte_tests::circles::{largest, largest_of_folders, sources};

/// The lines of the largest import circle of each crate that is shipped.
const CIRCLES: [(&str, usize); 10] = [
    ("app/src", 518),
    ("driver/src", 626),
    ("engines/src", 1105),
    ("engines/tls/src", 570),
    ("link/src", 230),
    ("server/conf/src", 912),
    ("server/base/src", 1084),
    ("server/http/src", 1700),
    ("server/lint/src", 651),
    ("server/modules/src", 1506),
];
/// The share of each crate's lines in the largest circle of its folders, percent, with the depth of the folders.
const FOLDER_CIRCLES: [(&str, usize, usize); 9] = [
    ("driver/src", 2, 5),
    ("engines/tls/src", 1, 10),
    ("link/src", 1, 10),
    ("server/base/src", 1, 17),
    ("server/conf/src", 1, 9),
    ("server/http/src", 1, 17),
    ("server/lint/src", 1, 9),
    ("server/modules/src", 1, 3),
    ("store/src", 1, 43),
];
/// How far a share may be above the truth, percent.
const SLACK_PERCENT: usize = 1;
/// How far a number may lie above the truth, in lines: a circle's files change with every commit.
const SLACK_LINES: usize = 150;

#[test]
fn import_circles_only_shrink() {
    let mut findings = Vec::new();
    for source in sources() {
        let circle = largest(&source);
        let limit = CIRCLES.iter().find(|(known, _)| *known == source);
        let most = limit.map_or(0, |(_, lines)| *lines);
        if circle.lines > most + SLACK_LINES {
            findings.push(format!(
                "{source}: {} lines import each other, {most} are known: {:?}",
                circle.lines, circle.modules
            ));
        }
        if circle.lines + SLACK_LINES < most {
            findings.push(format!(
                "{source}: {} lines, lower the number",
                circle.lines
            ));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn folder_circles_only_shrink() {
    let mut findings = Vec::new();
    for source in sources() {
        let row = FOLDER_CIRCLES.iter().find(|(known, ..)| *known == source);
        let (depth, most) = row.map_or((1, 0), |(_, depth, percent)| (*depth, *percent));
        let circle = largest_of_folders(&source, depth);
        if circle.percent > most + SLACK_PERCENT {
            findings.push(format!(
                "{source}: {} % of the lines are in folders that import each other, {most} % are known: {:?}",
                circle.percent, circle.modules
            ));
        }
        if circle.percent + SLACK_PERCENT < most {
            let percent = circle.percent;
            findings.push(format!("{source}: {percent} %, lower the number"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
