//! Text of all verbs fits a terminal: by `COLUMNS`, or by the size of the terminal. A pipe gets the full width.

use std::process::{Command, Output, Stdio};

use crate::lab::{COUNTRIES, LOG_LINE, bench, server, url};
use firstbyte_tests::{TempDir, peer, run, verbs};

fn in_columns(columns: &str, words: &[&str]) -> Output {
    let mut command = Command::new(peer::binary());
    let command = command
        .args(words)
        .env("COLUMNS", columns)
        .stdin(Stdio::null());
    command.output().expect("it starts")
}

/// The widest line of a text.
fn widest(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).into_owned();
    let widest = text.lines().max_by_key(|line| line.chars().count());
    widest.unwrap_or_default().to_owned()
}

#[track_caller]
fn assert_fits(output: &Output, columns: usize, words: &[&str]) {
    assert!(!output.stdout.is_empty(), "{words:?}: {output:?}");
    let line = widest(&output.stdout);
    assert!(
        line.chars().count() <= columns,
        "{words:?} in {columns}: {line:?}"
    );
}

#[test]
fn reports_fit_the_columns_that_there_are() {
    if !peer::is_firstbyte() {
        return;
    }
    let (server, dir) = (server(), TempDir::new());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let page = url(&server, 1, "/100.txt");
    dir.write(
        "a.json",
        bench(&["--requests", "20", "--blocks", "2", "--json", &page]).stdout,
    );
    dir.write("www/index.html", "<p>");
    let (report, www, out, har) = (path("a.json"), path("www"), path("out"), path("a.har"));
    assert_eq!(
        run(["waterfall", "--wire", "--runs", "2", "--har", &har, &page]).code,
        0
    );
    let conf = server.path("nginx.conf").display().to_string();
    dir.write(
        "trap.conf",
        "http { server { location /a { alias /b/; } } }",
    );
    let trap = path("trap.conf");
    dir.write("geoip", COUNTRIES);
    dir.write("a.log", LOG_LINE);
    let (geoip, log) = (path("geoip"), path("a.log"));
    let lines: [&[&str]; 12] = [
        &["bench", "--requests", "20", &page],
        &[
            "bench",
            "--requests",
            "20",
            "--blocks",
            "2",
            "--table",
            &page,
        ],
        &["compare", &report, &report],
        &["doctor", "-c", &conf],
        &["doctor", "--har", &har],
        &["explain", "-c", &conf, &page],
        &["freeze", &www, "--out", &out],
        &["lint", "-c", &trap],
        &["map", "--geoip", &geoip, &log],
        &["waterfall", &har],
        &["waterfall", "compare", &har, &har],
        &[
            "experiment",
            "power",
            "--effect",
            "1%",
            "--users-per-day",
            "9",
        ],
    ];
    let has_report = |verb: &&String| !["via", "lab"].contains(&verb.as_str());
    for verb in verbs().iter().filter(has_report) {
        assert!(
            lines.iter().any(|words| words[0] == *verb),
            "{verb} has no report here"
        );
    }
    for words in lines {
        for columns in [60, 72, 80] {
            assert_fits(&in_columns(&columns.to_string(), words), columns, words);
        }
    }
    // Reports of files are deterministic.
    for words in &lines[2..6] {
        let piped = run(*words).stdout.into_bytes();
        let wide = in_columns("100", words);
        if words[0] != "explain" {
            assert_eq!(piped, wide.stdout, "{words:?}");
        }
        assert_eq!(piped, in_columns("no number", words).stdout, "{words:?}");
    }
    let json = ["compare", "--json", &report, &report];
    assert_eq!(
        run(json).stdout.into_bytes(),
        in_columns("60", &json).stdout
    );
}

#[test]
fn help_fits_the_columns_that_there_are() {
    if !peer::is_firstbyte() {
        return;
    }
    for columns in [60, 80] {
        let text = columns.to_string();
        assert_fits(&in_columns(&text, &["help"]), columns, &["help"]);
        for verb in verbs() {
            for option in ["-h", "--help"] {
                let words = [verb.as_str(), option];
                assert_fits(&in_columns(&text, &words), columns, &words);
            }
        }
    }
    // Scripts read these lines.
    let configured = in_columns("60", &["-V"]).stderr;
    assert_eq!(
        String::from_utf8_lossy(&configured).into_owned(),
        run(["-V"]).stderr
    );
}

/// `script` runs a command on a terminal of its own.
#[test]
fn a_terminal_has_its_own_size() {
    if !peer::is_firstbyte() {
        return;
    }
    let binary = peer::binary();
    let line = format!(
        "stty cols 64 && {} help && {0} bench --help",
        binary.display()
    );
    let mut command = Command::new("script");
    let command = command
        .args(["-qec", &line, "/dev/null"])
        .env_remove("COLUMNS");
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("util-linux is there");
    assert!(output.status.success(), "{output:?}");
    assert_fits(&output, 64, &["help"]);
    assert!(
        widest(&output.stdout).chars().count() > 56,
        "the width is used"
    );
}
