//! Random texts: parsing and walking never panic, and words written in quotes read back.
//!
//! A failure prints its seed. `CONF_SEED` and `CONF_ROUNDS` repeat or extend a run.

mod toy;

use std::sync::Arc;

use conf::{Item, Memory, Origin, parse, quote};
use toy::{MAIN_FILE, Toy};

struct Random(fastrand::Rng);

impl Random {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    fn bytes(&mut self, longest: usize) -> Vec<u8> {
        let len = self.below(longest + 1);
        (0..len).map(|_| self.0.u8(..)).collect()
    }

    /// A text of the pieces that mean something to the lexer or to the toy language.
    fn pieces(&mut self, most: usize) -> Vec<u8> {
        const PIECES: &[&str] = &[
            " ",
            " ",
            "\n",
            ";",
            ";",
            "{",
            "}",
            "\"",
            "'",
            "\\",
            "$",
            "${",
            "#",
            ")",
            "\t",
            "\r",
            "\u{feff}",
            "http",
            "server",
            "location",
            "/",
            "include",
            "*.conf",
            "nginx.conf",
            "events",
            "types",
            "map",
            "sendfile",
            "on",
            "send_timeout",
            "1h 5",
            "proxy_pass",
            "gzip_proxied",
            "any",
            "server_nam",
        ];
        let count = self.below(most + 1);
        (0..count)
            .flat_map(|_| PIECES[self.below(PIECES.len())].bytes())
            .collect()
    }
}

/// Runs `f` with each of a number of seeds; a panic is preceded by the seed.
fn seeded(f: impl Fn(&mut Random)) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("CONF_SEED").unwrap_or(1);
    for seed in first..first + number("CONF_ROUNDS").unwrap_or(2000) {
        let shown = ShownOnPanic(seed);
        f(&mut Random(fastrand::Rng::with_seed(seed)));
        drop(shown);
    }
}

struct ShownOnPanic(u64);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("CONF_SEED={}", self.0);
        }
    }
}

#[test]
fn parsing_random_bytes_ends_without_panic() {
    seeded(|random| {
        let text = Arc::new(random.bytes(300));
        parse(&text, 0, &Origin::file("/a.conf"));
        parse(&text, 0, &Origin::CommandLine);
    });
}

#[test]
fn walking_random_pieces_ends_without_panic() {
    seeded(|random| {
        let mut memory = Memory::default().with_file(MAIN_FILE, random.pieces(60));
        memory.add_file("/etc/nginx/a.conf", random.pieces(20));
        memory.add_file("/etc/nginx/b.conf", random.pieces(20));
        let mut toy = Toy::new(memory);
        let parameter = random.pieces(4);
        let result = toy.command_line(&parameter);
        toy.render(result);
        let result = toy.load();
        toy.render(result);
    });
}

#[test]
fn words_written_in_quotes_read_back() {
    seeded(|random| {
        let words: Vec<_> = (0..=random.below(5))
            .map(|_| [random.bytes(20), random.pieces(4)].concat())
            .collect();
        let quoted: Vec<_> = words.iter().map(|word| quote(word)).collect();
        let text = Arc::new([quoted.join(b" ".as_slice()), b";".to_vec()].concat());
        let items = parse(&text, 0, &Origin::file("/a.conf"));
        let [Item::Directive(d)] = items.as_slice() else {
            panic!("one directive: {items:?}")
        };
        let read: Vec<_> = std::iter::once(&d.name)
            .chain(&d.args)
            .map(|word| word.text.to_vec())
            .collect();
        assert_eq!(read, words);
    });
}
