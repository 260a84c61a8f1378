//! `bench`, `doctor` and `waterfall --wire` name the scheme that the port of a server needs.
//!
//! Freeze makes no connection; a browser has errors of its own.

use crate::lab;
use firstbyte_tests::run;

const VERBS: [&[&str]; 3] = [
    &["bench", "--requests", "3", "--insecure"],
    &["doctor", "--insecure"],
    &["waterfall", "--wire", "--insecure"],
];

/// Runs each verb with the URL, over each protocol; its output has the reason.
#[track_caller]
fn each_names(url: &str, protocols: &[&str], reason: &str) {
    for verb in VERBS {
        for protocol in protocols {
            let outcome = run(verb.iter().chain(&["--protocol", protocol, url]));
            let printed = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(printed.contains(reason), "{verb:?} {protocol}: {outcome:?}");
        }
    }
}

#[test]
fn https_at_a_port_of_plain_http_is_named() {
    let server = lab::server();
    let url = format!("https://localhost:{}/", server.port_number(1));
    let reason = "the server speaks plain HTTP at this port: use http://";
    each_names(&url, &["h1", "h2", "auto"], reason);
}

#[test]
fn plain_http_at_a_port_of_tls_is_named() {
    let server = lab::server();
    let url = format!("http://localhost:{}/", server.port_number(3));
    let reason = "the server speaks TLS at this port: use https://";
    each_names(&url, &["h1", "h2", "auto"], reason);
}
