//! `rtt_map`, `lab_store`, `lab_retention`, `lab_network`: values at their limits, and errors.

use crate::site::Site;

const STORE: &str = "rtt_map on; lab_store sqlite:/db;";
const CLICKHOUSE: &str = "clickhouse:http://localhost/visits";

fn is_accepted(lines: &str) {
    let warnings = Site::warnings_with(&format!("{lines} server {{ }}"), &[]);
    assert!(warnings.is_empty(), "{lines}: {warnings:?}");
}

fn refused(lines: &str, expected: &str) {
    let error = Site::refused(&format!("{lines} server {{ }}"));
    assert!(error.contains(expected), "{lines}: {error}");
}

#[test]
fn shares_are_from_a_hundredth_of_a_percent_to_all() {
    for share in ["0.01%", "1%", "99.99%", "100%"] {
        is_accepted(&format!("rtt_map on sample={share}; lab_store sqlite:/db;"));
    }
    for wrong in [
        "sample=0%",
        "sample=0.001%",
        "sample=100.01%",
        "sample=10",
        "sample=",
        "10%",
    ] {
        let lines = format!("rtt_map on {wrong}; lab_store sqlite:/db;");
        refused(&lines, &format!("invalid value \"{wrong}\""));
    }
    refused("rtt_map yes;", "invalid value \"yes\"");
    refused("rtt_map off sample=1%;", "invalid value \"off\"");
    refused("rtt_map off; rtt_map off;", "is duplicate");
}

#[test]
fn recording_needs_a_store_and_a_store_needs_recording() {
    is_accepted("rtt_map off;");
    is_accepted(STORE);
    refused("rtt_map on;", "\"rtt_map\" directive needs a \"lab_store\"");
    for unused in [
        "lab_store sqlite:/db;",
        "rtt_map off; lab_store sqlite:/db;",
    ] {
        let warnings = Site::warnings_with(&format!("{unused} server {{ }}"), &[]);
        let [warning] = &warnings[..] else {
            panic!("{unused}: {warnings:?}");
        };
        assert!(
            warning.contains(
                "has no effect without \"rtt_map on\", \"experiment\" or \"lab_dashboard\""
            ),
            "{warning}"
        );
    }
}

#[test]
fn stores_are_files_of_sqlite_or_servers() {
    is_accepted("rtt_map on; lab_store sqlite:db server=edge-1;");
    for wrong in ["/db", "sqlite:", "SQLITE:/db", "mysql://a/b", "clickhouse"] {
        let lines = format!("rtt_map on; lab_store {wrong};");
        refused(&lines, &format!("invalid store \"{wrong}\", it must be"));
    }
    for wrong in [
        "http://a",
        "ftp://a/b",
        "a/b",
        "http://a:0/b",
        "http://a/b-c",
        "",
    ] {
        let lines = format!("rtt_map on; lab_store clickhouse:{wrong};");
        refused(
            &lines,
            &format!("invalid store \"clickhouse:{wrong}\": the URL"),
        );
    }
    for wrong in [
        "server=",
        "name=a",
        "\"server=a\nb\"",
        "user=a",
        "batch=1s",
        "x",
    ] {
        refused(
            &format!("rtt_map on; lab_store sqlite:/db {wrong};"),
            "invalid value",
        );
    }
    for store in ["sqlite:/db", CLICKHOUSE] {
        let lines = format!("rtt_map on; lab_store {store} server=a server=a;");
        refused(&lines, "duplicate parameter \"server=a\"");
    }
    refused(&format!("{STORE} lab_store sqlite:/other;"), "is duplicate");
}

#[test]
fn parameters_of_clickhouse_have_limits() {
    let with = |parameters: &str| format!("rtt_map on; lab_store {CLICKHOUSE} {parameters};");
    let longest = "n".repeat(255);
    for parameters in [
        "",
        "server=a user=b password_file=c spill=/d spill_size=1m batch=100ms",
        "spill_size=1048577 batch=101ms",
        "spill_size=9g batch=10m",
        "batch=599999ms",
        &format!("server={longest} user={longest}"),
    ] {
        is_accepted(&with(parameters));
    }
    is_accepted("rtt_map on; lab_store clickhouse:https://a/b ca=/c user=d password_file=e;");
    for wrong in [
        "spill_size=1048575",
        "spill_size=1023k",
        "spill_size=off",
        "spill_size=",
        "batch=99ms",
        "batch=600001ms",
        "batch=11m",
        "batch=0",
        "batch=",
        "user=",
        "spill=",
        "password_file=",
        "ca=",
        "server=",
        "size=1g",
        "x",
        &format!("user={longest}n"),
        &format!("server={longest}n"),
    ] {
        refused(&with(wrong), &format!("invalid value \"{wrong}\""));
    }
    for name in ["user=a", "spill=/a", "spill_size=1m", "batch=1s"] {
        refused(&with(&format!("{name} {name}")), "duplicate parameter");
    }
    refused(&with("password_file=a"), "needs \"user=\"");
    refused(&with("ca=/a"), "its URL is not \"https://\"");
    refused(
        &format!("{} lab_retention 1d size=1g;", with("")),
        "\"size=\" of \"lab_retention\" limits a SQLite file",
    );
    is_accepted(&format!("{} lab_retention 1d rows=1d;", with("")));
}

#[test]
fn password_over_an_open_network_is_a_warning() {
    let lines = "rtt_map on; lab_store clickhouse:http://db.example/b user=a password_file=c;";
    let warnings = Site::warnings_with(&format!("{lines} server {{ }}"), &[]);
    assert!(
        warnings[0].contains("sends the password unencrypted"),
        "{warnings:?}"
    );
}

#[test]
fn errors_never_show_a_password() {
    for store in [
        "clickhouse:http://user:hunter2@a/b",
        "clickhouse:https://user:hunter2@a:1/b server=x",
        "clickhouse:ftp://user:hunter2@a/b",
        "clikhouse:http://user:hunter2@a/b",
        "http://user:hunter2@a/b",
        "clickhouse:http://a/b password=hunter2",
        "sqlite:/db password=hunter2",
    ] {
        let error = Site::refused_whole(&format!("rtt_map on; lab_store {store}; server {{ }}"));
        assert!(!error.contains("hunter2"), "{store}: {error}");
        assert!(error.contains("password_file="), "{store}: {error}");
    }
}

#[test]
fn prefixes_of_networks_never_keep_an_address_whole() {
    for networks in ["/24 /48", "/0 /0", "/23 /47", "off"] {
        is_accepted(&format!("{STORE} lab_network {networks};"));
    }
    for (wrong, word) in [
        ("/25 /48", "/25"),
        ("/24 /49", "/49"),
        ("/32 /128", "/32"),
        ("24 /48", "24"),
        ("/+4 /48", "/+4"),
        ("/ /48", "/"),
        ("/24", "/24"),
        ("off off", "off"),
    ] {
        let lines = format!("{STORE} lab_network {wrong};");
        refused(&lines, &format!("invalid prefix \"{word}\""));
    }
}

#[test]
fn retention_has_ages_and_a_least_size() {
    for retention in [
        "1s",
        "400d",
        "90d rows=7d",
        "90d rows=7d size=1m",
        "400d rows=30d size=1g",
        "90d size=off rows=0",
    ] {
        is_accepted(&format!("{STORE} lab_retention {retention};"));
    }
    for (wrong, word) in [
        ("90d size=1023k", "size=1023k"),
        ("90d size=", "size="),
        ("90d rows=x", "rows=x"),
        ("90d 7d", "7d"),
    ] {
        let lines = format!("{STORE} lab_retention {wrong};");
        refused(&lines, &format!("invalid parameter \"{word}\""));
    }
    refused(
        &format!("{STORE} lab_retention x;"),
        "\"lab_retention\" directive invalid value",
    );
}
