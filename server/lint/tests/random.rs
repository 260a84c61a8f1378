//! Random configurations and expressions: the lint never panics, and ends.
//!
//! A failure prints its seed. `LINT_SEED` and `LINT_ROUNDS` repeat or extend a run.

use std::path::Path;

use conf::{Memory, quote};

struct Random(fastrand::Rng);

impl Random {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A word of a few pieces.
    fn word(&mut self) -> String {
        let count = self.below(7);
        (0..count).map(|_| self.one(PIECES)).collect()
    }

    fn quoted(&mut self) -> String {
        let word = self.word();
        String::from_utf8(quote(word.as_bytes())).expect("pieces are text")
    }

    /// Some directives, blocks at most `depth` deep.
    fn items(&mut self, depth: usize, text: &mut String) {
        for _ in 0..self.below(7) {
            if depth > 0 && self.below(3) == 0 {
                let block = self.one(BLOCKS);
                *text += block;
                for _ in 0..self.below(4) {
                    *text += &format!(" {}", self.quoted());
                }
                *text += " {\n";
                self.items(depth - 1, text);
                *text += "}";
            } else {
                *text += self.one(SIMPLE);
                for _ in 0..self.below(4) {
                    *text += &format!(" {}", self.quoted());
                }
                *text += ";";
            }
            *text += self.one(&[
                "\n",
                "\n",
                " # firstbyte: allow FB201\n",
                " # firstbyte: x\n",
                " ",
            ]);
        }
    }
}

const BLOCKS: &[&str] = &[
    "http",
    "server",
    "location",
    "location ~",
    "location ~*",
    "if",
    "if ($uri ~",
    "map $uri",
    "map",
    "types",
    "geo",
    "limit_except",
    "upstream",
    "stream",
];

const SIMPLE: &[&str] = &[
    "root",
    "alias",
    "return",
    "return 301",
    "rewrite",
    "set",
    "set $a",
    "add_header",
    "add_header A",
    "proxy_pass",
    "proxy_set_header Host",
    "try_files",
    "allow",
    "deny",
    "listen",
    "server_name",
    "access_log",
    "error_log",
    "resolver",
    "ssl_protocols",
    "ssl_ciphers",
    "valid_referers",
    "more_set_headers",
    "include",
    "~",
    "~*^/(a+)+$",
    "default",
    "internal",
    "server_tokens",
    "open_log_file_cache",
    "add_header_inherit",
    "listen 443 ssl",
    "http2",
    "gzip on",
    "gzip_types",
    "keepalive_timeout 0",
    "proxy_ignore_headers",
    "return 301 https://",
    "ssl_buffer_size",
    "ssl_certificate",
    "stub_status",
    "add_header Strict-Transport-Security",
    "proxy_pass http://$a",
    "worker_rlimit_nofile 1",
    "worker_connections",
];

const PIECES: &[&str] = &[
    "a",
    "b",
    "/",
    ".",
    "..",
    "$",
    "$uri",
    "${host}",
    "$1",
    "$a",
    "$http_origin",
    "~",
    "~*",
    "=",
    "@",
    "^",
    "^~",
    "(",
    ")",
    "(?:",
    "(?<a>",
    "(?=",
    "(?i)",
    "[",
    "]",
    "[^/]",
    "\\",
    "\\d",
    "\\w",
    "*",
    "+",
    "?",
    "{2}",
    "{1,3}",
    "|",
    "://",
    "http://",
    ":",
    "443",
    "[::]",
    "-s",
    "-f",
    "all",
    "off",
    "_",
    "é",
    "\u{0}",
    "\n",
    " ",
    "#",
    ";",
];

struct ShownOnPanic(u64);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("LINT_SEED={}", self.0);
        }
    }
}

/// Runs `f` with each of a number of seeds; a panic is preceded by the seed.
fn seeded(f: impl Fn(&mut Random)) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("LINT_SEED").unwrap_or(1);
    for seed in first..first + number("LINT_ROUNDS").unwrap_or(2000) {
        let shown = ShownOnPanic(seed);
        f(&mut Random(fastrand::Rng::with_seed(seed)));
        drop(shown);
    }
}

#[test]
fn random_configurations_are_judged_without_panic() {
    let judged = std::cell::Cell::new(0);
    seeded(|random| {
        let mut text = String::from("http { server {");
        random.items(4, &mut text);
        text += "} }";
        let main = Path::new("/c");
        let source = || Memory::default().with_file(main, text.as_str());
        if let Ok(report) = lint::check(source(), main, Some("error_log off;")) {
            let shown: Vec<String> = report.rendered().collect();
            assert!(shown.iter().all(|warning| warning.starts_with("FB")));
            let delays = lint::delays(source(), main, None).expect("the text is whole");
            assert!(delays.servers > 0 && delays.found.iter().all(|one| !one.places.is_empty()));
            judged.set(judged.get() + 1);
        }
    });
    assert!(judged.get() > 0, "some of them are whole");
}

#[test]
fn random_expressions_are_judged_without_panic() {
    seeded(|random| {
        let pattern: String = (0..random.below(12)).map(|_| random.word()).collect();
        let pattern = String::from_utf8(quote(pattern.as_bytes())).expect("pieces are text");
        let text = format!(
            "http {{ server {{ if ($http_origin !~ {pattern} ) {{ }} location ~ {pattern} {{ }} }} }}"
        );
        let main = Path::new("/c");
        assert!(lint::check(Memory::default().with_file(main, text), main, None).is_ok());
    });
}
