//! Exit statuses of all verbs are those of the table in docs/verbs.md.

use std::collections::BTreeSet;

use crate::lab::{COUNTRIES, LOG_LINE, bench, server, url};
use firstbyte_tests::source::{read, root};
use firstbyte_tests::via::possible;
use firstbyte_tests::{TempDir, peer, run, verbs};

/// Pairs of a status and a verb of the table; `all` is every verb of the help.
fn table() -> BTreeSet<(String, String)> {
    let text = read(&root().join("docs/verbs.md"));
    let (_, table) = text
        .split_once("| status | meaning | verbs |\n")
        .expect("there is a table");
    let rows = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let mut pairs = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let verbs: Vec<String> = match cells[2] {
            "all" => verbs(),
            named => named
                .split(", ")
                .map(|verb| verb.trim_matches('`').to_owned())
                .collect(),
        };
        pairs.extend(verbs.into_iter().map(|verb| (cells[0].to_owned(), verb)));
    }
    pairs
}

#[test]
fn statuses_are_those_of_the_table() {
    if !peer::is_firstbyte() {
        return;
    }
    let (server, dir) = (server(), TempDir::new());
    let page = url(&server, 1, "/100.txt");
    dir.write(
        "a.json",
        bench(&["--requests", "20", "--blocks", "2", "--json", &page]).stdout,
    );
    dir.write("www/index.html", "<img src=gone.png>");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (report, www, out) = (path("a.json"), path("www"), path("out"));
    let conf = server.path("nginx.conf").display().to_string();
    dir.write(
        "trap.conf",
        "http { server { location /a { alias /b/; } } }",
    );
    let trap = path("trap.conf");
    dir.write("geoip", COUNTRIES);
    dir.write("a.log", LOG_LINE);
    let (geoip, log) = (path("geoip"), path("a.log"));
    let mut cases: Vec<(i32, Vec<&str>)> = vec![
        (0, vec!["bench", "--requests", "20", &page]),
        (
            2,
            vec!["bench", "--requests", "20", &page, "--fail-if", "rate>0"],
        ),
        (0, vec!["compare", &report, &report]),
        (0, vec!["doctor", "-c", &conf, "--fail-on", "never"]),
        (2, vec!["doctor", "-c", &conf, "--fail-on", "note"]),
        (0, vec!["experiment", "power", "--effect", "1%"]),
        (0, vec!["explain", "-c", &conf, &page]),
        (0, vec!["freeze", &www, "--out", &out]),
        (2, vec!["freeze", &www, "--out", &out, "--strict"]),
        (0, vec!["waterfall", "--wire", &page]),
        (
            2,
            vec!["waterfall", "--wire", &page, "--fail-if", "requests>0"],
        ),
        (0, vec!["lint", "-c", &conf, "--fail-on", "never"]),
        (2, vec!["lint", "-c", &trap]),
        (0, vec!["map", "--geoip", &geoip, &log]),
        (125, vec!["via", "--wrong"]),
    ];
    for verb in [
        "bench",
        "compare",
        "doctor",
        "experiment",
        "explain",
        "freeze",
        "lab",
        "lint",
        "map",
        "waterfall",
    ] {
        cases.push((1, vec![verb, "--wrong"]));
    }
    let mut pairs = table();
    if possible() {
        cases.extend([
            (0, vec!["via", "0ms", "--", "true"]),
            (126, vec!["via", "0ms", "--", "/etc/passwd"]),
            (127, vec!["via", "0ms", "--", "/none/at/all"]),
        ]);
        assert_eq!(run(["via", "0ms", "--", "sh", "-c", "exit 7"]).code, 7);
        assert_eq!(
            run(["via", "0ms", "--", "sh", "-c", "kill -TERM $$"]).code,
            128 + 15
        );
    } else {
        pairs.retain(|(status, verb)| verb != "via" || status == "125");
    }
    pairs.remove(&("other".to_owned(), "via".to_owned()));
    // Signals are sent in the tests of these verbs.
    assert!(pairs.remove(&("0".to_owned(), "lab".to_owned())));
    for verb in ["bench", "doctor", "map", "waterfall"] {
        assert!(pairs.remove(&("130".to_owned(), verb.to_owned())), "{verb}");
    }
    let mut seen = BTreeSet::new();
    for (code, words) in &cases {
        let outcome = run(words);
        assert_eq!(outcome.code, *code, "{words:?}: {outcome:?}");
        seen.insert((code.to_string(), words[0].to_owned()));
    }
    assert_eq!(pairs, seen, "the table has others than the verbs");
}

/// Status, examples and references are in the long help of each verb, and in its page of the manual.
#[test]
fn every_help_and_page_has_statuses_examples_and_references() {
    if !peer::is_firstbyte() {
        return;
    }
    for verb in verbs() {
        let help = run([&verb, "--help"]).stdout;
        for title in ["\nExit status:\n", "\nExamples:\n", "\nSee also: "] {
            assert!(help.contains(title), "{verb}: {title}: {help}");
        }
        let page = read(&root().join(format!("packaging/man/firstbyte-{verb}.1")));
        for title in ["EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
            assert!(
                page.contains(&format!(".SH \"{title}\"\n")),
                "{verb}: {title}"
            );
        }
        let statuses = table().into_iter().filter(|(_, own)| *own == verb);
        for (status, _) in statuses {
            assert!(
                help.contains(&format!("\n  {status:<5}  ")),
                "{verb} {status}: {help}"
            );
            assert!(
                page.contains(&format!("\\fB{status}\\fR\n")),
                "{verb} {status}"
            );
        }
    }
}
