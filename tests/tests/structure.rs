//! Rules of the tree's structure: import circles, and long functions with their reasons.
//!
//! A number here may only fall: when a change makes it lower, the test asks for the new one, so that what was won is kept.

use std::path::PathBuf;

use firstbyte_tests::circles::{largest, sources};
use firstbyte_tests::source::{functions, is_test_file, read, rust_files, shipped_lines, shown};

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

/// From this length on a function has comments inside that say why.
const UNCOMMENTED_LINES_MAX: usize = 50;
/// From this length on a function has `// Long:` and a reason above it.
const UNEXPLAINED_LINES_MAX: usize = 70;
/// No shipped function is longer.
const LINES_MAX: usize = 100;

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

/// What is wrong with the functions of a text, as line and reason.
fn unexplained(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let shipped = shipped_lines(text).count();
    let is_reason = |line: &&str| line.starts_with("// Long: ");
    let is_comment = |line: &&str| line.contains("// ") && !line.starts_with("///");
    let mut found = Vec::new();
    for (first, length) in functions(text) {
        if first > shipped || length <= UNCOMMENTED_LINES_MAX {
            continue;
        }
        // What belongs to a function stands above it without an empty line.
        let above = lines[..first - 1].rsplit(|line| line.is_empty()).next();
        if length > LINES_MAX {
            found.push((first, "longer than any function may be"));
        } else if length > UNEXPLAINED_LINES_MAX && !above.iter().copied().flatten().any(is_reason)
        {
            found.push((first, "long, without `// Long: why` above"));
        } else if !lines[first..first + length - 1].iter().any(is_comment) {
            found.push((first, "no comment inside says why"));
        }
    }
    found
}

#[test]
fn long_functions_say_why() {
    let shipped = |path: &PathBuf| !is_test_file(path) && !shown(path).contains("/benches/");
    let mut findings = Vec::new();
    for path in rust_files("").into_iter().filter(shipped) {
        let found = unexplained(&read(&path));
        findings.extend(
            found
                .iter()
                .map(|(line, what)| format!("{}:{line}: {what}", shown(&path))),
        );
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_rules_see_what_they_look_for() {
    let body = |lines: usize| "    x();\n".repeat(lines);
    let function = |inside: &str| format!("fn f() {{\n{inside}}}\n");
    assert!(unexplained(&function(&body(48))).is_empty());
    assert_eq!(
        unexplained(&function(&body(49))),
        [(1, "no comment inside says why")]
    );
    let commented = |lines| function(&format!("    // why\n{}", body(lines)));
    assert!(unexplained(&commented(67)).is_empty());
    assert_eq!(unexplained(&commented(68))[0].0, 1);
    let reasoned = format!("// Long: one table.\n#[inline]\n{}", commented(68));
    assert!(unexplained(&reasoned).is_empty());
    let apart = format!("// Long: of another.\n\n{}", commented(68));
    assert_eq!(unexplained(&apart).len(), 1);
    assert_eq!(unexplained(&commented(98)).len(), 1);
    let declared = format!("fn g(\n    x: u8,\n) -> u8;\n{}", body(120));
    assert!(unexplained(&declared).is_empty());
    let tests = format!(
        "#[cfg(test)]\nmod tests {{\n    {}}}\n",
        function(&body(60))
    );
    assert!(unexplained(&tests).is_empty());
}
