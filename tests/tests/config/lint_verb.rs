//! `firstbyte lint`: the warnings for pipelines: text, JSON, SARIF, a choice of rules, the exit status.
//!
//! Which traps there are is tested beside the rules, `-t` in `lint.rs`. nginx has none of this.

use std::collections::BTreeSet;
use std::process::Command;

use firstbyte_tests::{Outcome, Server, peer};
use serde_json::Value;

/// An error, a warning and a notice, on lines 4, 6 and 9; line 8 would be another warning.
const TRAPS: &str = "\
events { }
http {
server { listen 80 default_server;
location /files { alias /srv/files/; }
	location
	/é { alias /srv/e/; } add_header Content-Type
	\"a\";
error_log off; # firstbyte: allow FB701
server_tokens on;
} }
";

/// A configuration with directives unknown to every server, since the verb applies none.
fn site() -> Server {
    let unknown = "include parts/*.conf;\nnonsense on;\nssl_certificate none.pem;\n";
    Server::whole(&format!("{TRAPS}{unknown}"))
        .file("parts/a b.conf", "user nobody;\nerror_log off;\n")
        .allow("[emerg]")
        .written()
}

/// Runs the verb in the directory of a server.
fn lint(server: &Server, words: &str) -> Outcome {
    lint_words(server, &words.split_whitespace().collect::<Vec<_>>())
}

fn lint_words(server: &Server, words: &[&str]) -> Outcome {
    let mut command = Command::new(peer::binary());
    command.arg("lint").args(words);
    let output = command.current_dir(server.dir().path()).output();
    let output = output.expect("the binary starts");
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn parsed(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// The codes and lines of a JSON report.
fn found(report: &Value) -> Vec<(String, u64)> {
    let findings = report["findings"].as_array().expect("a list");
    let found = findings.iter().map(|finding| {
        let code = finding["code"].as_str().expect("a code").to_owned();
        (code, finding["line"].as_u64().expect("a line"))
    });
    found.collect()
}

#[test]
fn text_has_levels_and_counts() {
    if !peer::is_firstbyte() {
        return;
    }
    let outcome = lint(&site(), "-c nginx.conf");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (2, ""));
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("[error] FB201: "), "{}", lines[0]);
    assert!(lines[0].ends_with(" in nginx.conf:4"), "{}", lines[0]);
    assert_eq!(lines[1], "    4 | location /files { alias /srv/files/; }");
    assert_eq!(lines[2], "      |          ^^^^^^");
    assert_eq!(lines.last(), Some(&"2 error, 2 warn, 1 notice"));
    let sound = Server::whole("events { }\n").written();
    let outcome = lint(&sound, "-c nginx.conf");
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "no warnings\n")
    );
}

#[test]
fn json_has_each_warning_with_its_place() {
    if !peer::is_firstbyte() {
        return;
    }
    let report = parsed(&lint(&site(), "-c nginx.conf --json"));
    assert_eq!(report["configuration"], "nginx.conf");
    let expected = [
        ("FB201", 4),
        ("FB201", 6),
        ("FB303", 6),
        ("FB304", 9),
        ("FB701", 2),
    ];
    let expected = expected.map(|(code, line)| (code.to_owned(), line));
    assert_eq!(found(&report), expected);
    let header = &report["findings"][2];
    assert_eq!(header["level"], "warn");
    assert_eq!(header["title"], "`add_header Content-Type`");
    assert_eq!(header["file"], "nginx.conf");
    // Characters, not bytes.
    assert_eq!(
        (&header["column"], &header["end_column"]),
        (&35.into(), &47.into())
    );
    assert!(
        header["message"]
            .as_str()
            .is_some_and(|m| m.starts_with("\"add_header\" adds"))
    );
    assert!(
        header["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("default_type"))
    );
    assert_eq!(report["findings"][4]["file"], "parts/a b.conf");
    assert_eq!(report["counts"]["error"], 2);
}

#[test]
fn the_exit_status_follows_the_level_and_the_choice() {
    if !peer::is_firstbyte() {
        return;
    }
    let site = site();
    for (words, code) in [
        ("", 2),
        ("--fail-on notice", 2),
        ("--fail-on error", 2),
        ("--fail-on never", 0),
        ("--fail-on error --ignore FB201", 0),
        ("--fail-on warn --ignore FB201", 2),
        ("--only FB304", 0),
        ("--only FB304 --fail-on notice", 2),
        ("--only FB304,FB303", 2),
        ("--ignore FB201,FB303 --ignore FB701", 0),
        ("--only FB101 --json", 0),
        ("--sarif --fail-on error", 2),
        // The command line is wrong.
        ("--only FB999", 1),
        ("--fail-on bad", 1),
        ("--json --sarif", 1),
    ] {
        let outcome = lint(&site, &format!("-c nginx.conf {words}"));
        assert_eq!(outcome.code, code, "{words}: {outcome:?}");
    }
    let only = parsed(&lint(&site, "-c nginx.conf --json --only FB304"));
    assert_eq!(found(&only), [("FB304".to_owned(), 9)]);
}

#[test]
fn the_configuration_is_found_as_the_words_say() {
    if !peer::is_firstbyte() {
        return;
    }
    let site = site();
    let dir = site.dir().path().display().to_string();
    for words in [
        format!("-p {dir} -c nginx.conf"),
        format!("-c {dir}/nginx.conf"),
        "-c nginx.conf".to_owned(),
        "-p . -c nginx.conf".to_owned(),
    ] {
        let report = parsed(&lint(&site, &format!("{words} --json")));
        assert_eq!(found(&report).len(), 5, "{words}");
    }
}

#[test]
fn the_command_line_is_judged_too() {
    if !peer::is_firstbyte() {
        return;
    }
    let site = site();
    let words = ["-c", "nginx.conf", "-g", "error_log off;"];
    let json = parsed(&lint_words(&site, &[&words[..], &["--json"]].concat()));
    let finding = &json["findings"][5];
    assert_eq!(
        (&finding["code"], &finding["file"]),
        (&"FB701".into(), &Value::Null)
    );
    let sarif = parsed(&lint_words(&site, &[&words[..], &["--sarif"]].concat()));
    // Code hosts drop results without a file.
    let place = &sarif["runs"][0]["results"][5]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "nginx.conf");
    assert_eq!(place["region"]["startLine"], 1);
}

#[test]
fn half_a_configuration_is_an_error() {
    if !peer::is_firstbyte() {
        return;
    }
    for (text, why) in [
        ("http { ", "unexpected end of file"),
        ("include none.conf;", "none.conf\" failed (2: "),
    ] {
        let broken = Server::whole(text).allow("[emerg]").written();
        for form in ["", "--json", "--sarif", "--fail-on never"] {
            let outcome = lint(&broken, &format!("-c nginx.conf {form}"));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{form}");
            assert!(
                outcome.stderr.starts_with("firstbyte lint: "),
                "{outcome:?}"
            );
            assert!(outcome.stderr.contains(why), "{outcome:?}");
        }
    }
}

/// The members that code hosts require of SARIF 2.1.0.
#[test]
fn sarif_is_what_code_hosts_read() {
    if !peer::is_firstbyte() {
        return;
    }
    let site = site();
    let log = parsed(&lint(&site, "-c nginx.conf --sarif"));
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .is_some_and(|uri| uri.ends_with("sarif-2.1.0.json"))
    );
    let [run] = &log["runs"].as_array().expect("runs")[..] else {
        panic!("one run: {log:#}")
    };
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "firstbyte lint");
    assert!(driver["semanticVersion"].is_string());
    let rules = driver["rules"].as_array().expect("rules");
    let mut ids = BTreeSet::new();
    for rule in rules {
        let id = rule["id"].as_str().expect("an id");
        assert!(ids.insert(id), "{id} twice");
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(
                rule[text]["text"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{rule}"
            );
        }
        assert!(
            LEVELS.contains(
                &rule["defaultConfiguration"]["level"]
                    .as_str()
                    .unwrap_or_default()
            )
        );
    }
    let results = run["results"].as_array().expect("results");
    let mut places = Vec::new();
    for result in results {
        let id = result["ruleId"].as_str().expect("a rule");
        let index = result["ruleIndex"].as_u64().expect("its index");
        let index = usize::try_from(index).expect("a number of rules");
        assert_eq!(rules[index]["id"], id);
        assert!(LEVELS.contains(&result["level"].as_str().unwrap_or_default()));
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        let [location] = &result["locations"].as_array().expect("locations")[..] else {
            panic!("one location: {result:#}")
        };
        let place = &location["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
        assert!(
            !uri.starts_with('/') && !uri.contains([':', ' ']),
            "{uri} is not relative"
        );
        let region = &place["region"];
        let number = |name: &str| region[name].as_u64().unwrap_or_default();
        assert!(number("startColumn") >= 1 && number("endColumn") > number("startColumn"));
        assert_eq!(number("startLine"), number("endLine"));
        places.push(format!("{id} {uri}:{}", number("startLine")));
    }
    let expected = [
        "FB201 nginx.conf:4",
        "FB201 nginx.conf:6",
        "FB303 nginx.conf:6",
        "FB304 nginx.conf:9",
        "FB701 parts/a%20b.conf:2",
    ];
    assert_eq!(places, expected);
    let levels: Vec<&str> = results
        .iter()
        .filter_map(|one| one["level"].as_str())
        .collect();
    assert_eq!(levels, ["error", "error", "warning", "note", "warning"]);
}

/// Levels of SARIF, section 3.27.10, that a finding can have.
const LEVELS: [&str; 3] = ["error", "warning", "note"];
