//! `rtt_map`, `lab_store`, `lab_retention`, `lab_network`: values at their limits, and errors.

use crate::site::Site;

const STORE: &str = "rtt_map on; lab_store sqlite:/db;";

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
            warning.contains("has no effect without \"rtt_map on\""),
            "{warning}"
        );
    }
}

#[test]
fn stores_are_files_of_sqlite() {
    is_accepted("rtt_map on; lab_store sqlite:db server=edge-1;");
    for wrong in ["/db", "sqlite:", "clickhouse:http://a", "SQLITE:/db"] {
        let lines = format!("rtt_map on; lab_store {wrong};");
        refused(&lines, &format!("invalid store \"{wrong}\""));
    }
    for wrong in ["server=", "name=a", "\"server=a\nb\""] {
        refused(
            &format!("rtt_map on; lab_store sqlite:/db {wrong};"),
            "invalid value",
        );
    }
    refused(&format!("{STORE} lab_store sqlite:/other;"), "is duplicate");
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
