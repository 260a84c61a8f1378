//! Logs of clients in two countries, and runs of `firstbyte map` on them.
#![allow(dead_code, reason = "each test file uses its own part")]

use firstbyte_tests::{Outcome, TempDir, run};
use serde_json::Value;

/// 192.0.2.0/24 is Germany, 127.0.0.0/8 is France; as Tor writes it.
pub(crate) const COUNTRIES: &str = "2130706432,2147483647,FR\n3221225984,3221226239,DE\n";
pub(crate) const LINE: &str =
    "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"curl\"";

/// A directory with a database of countries.
pub(crate) struct Logs(pub(crate) TempDir);

impl Logs {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new();
        dir.write("geoip", COUNTRIES);
        Self(dir)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        self.0.write(name, content);
        self.path(name)
    }

    /// Runs the verb.
    pub(crate) fn map(&self, words: &[&str]) -> Outcome {
        let geoip = self.path("geoip");
        run([&["map", "--geoip", &geoip], words].concat())
    }

    /// Runs the verb, which has to succeed; returns its JSON and its messages.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> (Value, String) {
        let outcome = self.map(&[&["--json"], words].concat());
        assert_eq!(outcome.code, 0, "{words:?}: {outcome:?}");
        let json = serde_json::from_str(&outcome.stdout).expect("it is JSON");
        (json, outcome.stderr)
    }
}

/// Requests and samples of a country.
#[track_caller]
pub(crate) fn figures(json: &Value, code: &str) -> (u64, u64) {
    let countries = json["countries"].as_array().expect("a list");
    let mut own = countries.iter().filter(|one| one["country"] == code);
    let own = own.next().unwrap_or_else(|| panic!("no {code} in {json}"));
    let number = |name: &str| own[name].as_u64().expect("a number");
    (number("requests"), number("samples"))
}

pub(crate) fn lines(count: usize, suffix: &str) -> String {
    format!("{LINE}{suffix}\n").repeat(count)
}
