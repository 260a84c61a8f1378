//! Rules of the tree's structure: import circles.
//!
//! A number here may only fall: when a change makes it lower, the test asks for the new one, so that what was won is kept.

use firstbyte_tests::circles::{largest, sources};

/// The lines of the largest import circle of each crate that is shipped.
const CIRCLES: [(&str, usize); 11] = [
    ("app/src", 3694),
    ("driver/src", 626),
    ("engines/src", 1105),
    ("engines/tls/src", 570),
    ("lab/src", 1016),
    ("link/src", 230),
    ("server/conf/src", 912),
    ("server/base/src", 1084),
    ("server/http/src", 3697),
    ("server/lint/src", 3395),
    ("server/modules/src", 1707),
];
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
