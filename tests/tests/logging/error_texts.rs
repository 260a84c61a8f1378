//! Texts of system errors: number and text in nginx's form, in tools as in logs.
//!
//! Source: nginx documentation, "Debugging"; errno(3).

use std::fs;

use firstbyte_tests::{TempDir, peer, run};

/// Each verb gets a file that it cannot open, read or write.
#[test]
fn verbs_write_system_errors_as_nginx_does() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let har = dir.path().join("a.har");
    let text = r#"{"log":{"entries":[{"startedDateTime":"2026-01-01T00:00:00Z","time":1,
        "request":{"url":"http://localhost/"},"response":{"status":200},"timings":{"wait":1}}]}}"#;
    fs::write(&har, text).expect("it can be written");
    let out = dir.path().join("out").display().to_string();
    let har = har.display().to_string();
    let (missing, below) = ("/none/at/all", format!("{har}/file"));
    let url = "https://127.0.0.1:1/";
    let absent = "2: No such file or directory";
    let no_folder = "20: Not a directory";
    let plain = "http://127.0.0.1:1/";
    let cases: [(&[&str], &str); 12] = [
        (&["compare", missing, missing], absent),
        (&["bench", url, "--mix", missing], absent),
        (&["bench", url, "--body", missing], absent),
        (&["bench", url, "--cacert", missing], absent),
        (&["bench", plain, "--cacert", missing], absent),
        (&["waterfall", plain, "--wire", "--cacert", missing], absent),
        (&["doctor", plain, "--cacert", missing], absent),
        (&["waterfall", "/none/at/all.har"], absent),
        (&["waterfall", &below], no_folder),
        (&["waterfall", &har, "--html", &below], no_folder),
        (&["doctor", "--pcap", missing], absent),
        (&["freeze", "--out", &out, missing], absent),
    ];
    for (words, wanted) in cases {
        let outcome = run(words);
        assert_ne!(outcome.code, 0, "{words:?}");
        let text = &outcome.stderr;
        let is_ours = text.contains(wanted) && !text.contains("os error");
        assert!(is_ours, "{words:?}: {text}");
    }
}
