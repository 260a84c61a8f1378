//! `benches/scale` measures rows, writes them as JSON and Markdown, and leaves neither files nor processes behind.
//!
//! Skipped without python3 or a C compiler, which its clients need. Own executable: its clients use all CPUs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use firstbyte_tests::programs::command;
use firstbyte_tests::{TempDir, peer};
use serde_json::Value;

/// Runs it on the binary under test, with a directory for its temporary files.
fn scale(dir: &TempDir, words: &[&str]) -> Option<Output> {
    let (Some(python), Some(_)) = (command("python3"), command("cc")) else {
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/scale");
    let mut start = Command::new(python);
    start.arg(script).args(["--quick", "--rounds", "1"]);
    start.arg(format!("ours=nginx:{}", peer::binary().display()));
    start.args(words).env("TMPDIR", dir.path());
    Some(start.output().expect("python3 starts"))
}

#[test]
fn a_row_has_a_figure_or_a_reason_and_nothing_stays() {
    let dir = TempDir::new();
    let report = dir.path().join("report.json");
    let page = dir.path().join("report.md");
    let missing = format!("lacking=nginx:{}", env!("CARGO_MANIFEST_DIR"));
    let words = [
        "--only",
        "log,gateways",
        "--json",
        &report.to_string_lossy(),
        "--report",
        &page.to_string_lossy(),
    ];
    let Some(output) = scale(&dir, &words) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let report: Value =
        serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
    assert_eq!(report["format"], "firstbyte-scale/1");
    let of_row = |name: &str| {
        let rows = report["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["row"] == name).expect("the row");
        row["servers"]["ours"]["median"].as_f64().expect("a figure")
    };
    assert!(of_row("log/on") > 0.0 && of_row("log/off") > 0.0);
    for row in [
        "fastcgi",
        "fastcgi-keep",
        "scgi",
        "uwsgi",
        "memcached",
        "upload",
    ] {
        assert!(of_row(&format!("gateways/{row}")) > 0.0, "{row}");
    }
    let page = fs::read_to_string(&page).expect("a report in Markdown");
    let rows = report["rows"].as_array().expect("rows").len();
    let cells = page.lines().filter(|line| line.starts_with("| "));
    assert_eq!(cells.count(), rows + 2, "{page}");
    assert!(
        page.contains("ours=nginx:PATH") && page.contains("1 round."),
        "{page}"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.lines().all(|line| line.len() <= 100), "{table}");
    let left: Vec<_> = fs::read_dir(dir.path()).expect("the directory").collect();
    assert_eq!(left.len(), 2, "more than the reports: {left:?}");
    // A missing binary is reported before anything starts.
    let refused = scale(&dir, &[&missing]).expect("python3 is there");
    assert_eq!(refused.status.code(), Some(2));
}
