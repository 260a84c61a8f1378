//! Pictures are readable without variables of CSS: librsvg, as file managers use it, draws one of each kind.
//!
//! Looked at: the background is light, text is dark, and bars have their colours. Skipped with a message if rsvg-convert is missing.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use firstbyte_tests::{Server, TempDir, peer, programs, run};
use lab::map::{self, RttMap};
use serde_json::{Value, json};

/// Colours of a picture's pixels, on white.
struct Pixels {
    width: usize,
    all: Vec<[u8; 3]>,
}

impl Pixels {
    /// Draws a picture; `None` without rsvg-convert.
    fn of(svg: &str) -> Option<Self> {
        let program = programs::command("rsvg-convert")?;
        let mut child = Command::new(program)
            .args(["--format", "png", "--background-color", "white"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        let mut output = child.stdout.take().expect("a pipe");
        // librsvg reads the whole picture before it writes.
        input.write_all(svg.as_bytes()).expect("it reads");
        drop(input);
        let mut png = Vec::new();
        output.read_to_end(&mut png).expect("it writes");
        assert!(child.wait().expect("a child").success());
        Some(decoded(&png))
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.all[y * self.width + x]
    }

    /// How many pixels have exactly a colour, `#rrggbb`.
    fn count(&self, colour: &str) -> usize {
        let channel = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
        let wanted = [1, 3, 5].map(channel);
        self.all.iter().filter(|pixel| **pixel == wanted).count()
    }

    /// Light below dark text: edges and most pixels are light, some are dark, and next to none is black.
    #[track_caller]
    fn assert_readable(&self, name: &str) {
        let sum = |pixel: [u8; 3]| pixel.iter().map(|channel| u32::from(*channel)).sum::<u32>();
        let middle = self.at(self.width / 2, 2);
        assert!(sum(middle) > 3 * 230, "{name}: background {middle:?}");
        let all = self.all.len();
        let count = |is: &dyn Fn(u32) -> bool| self.all.iter().filter(|one| is(sum(**one))).count();
        let (light, dark) = (count(&|sum| sum > 3 * 200), count(&|sum| sum < 3 * 110));
        assert!(light > all / 2, "{name}: {light} of {all} pixels are light");
        assert!(dark > all / 2000, "{name}: {dark} of {all} pixels are dark");
        assert!(
            self.count("#000000") < all / 100,
            "{name}: areas without a colour are black"
        );
    }
}

/// A PNG of 8 bits without an alpha channel, as Cairo writes opaque ones. Source: RFC 2083.
fn decoded(png: &[u8]) -> Pixels {
    let number = |at: usize| {
        let bytes = png[at..at + 4].try_into().expect("four bytes");
        u32::from_be_bytes(bytes) as usize
    };
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let (width, height) = (number(16), number(20));
    assert_eq!(png[24..29], [8, 2, 0, 0, 0], "8 bits, RGB, not interlaced");
    let (mut at, mut data) = (8, Vec::new());
    while at < png.len() {
        let length = number(at);
        if png[at + 4..at + 8] == *b"IDAT" {
            data.extend_from_slice(&png[at + 8..at + 8 + length]);
        }
        at += 12 + length;
    }
    let mut raw = Vec::new();
    flate2::read::ZlibDecoder::new(&data[..])
        .read_to_end(&mut raw)
        .expect("zlib");
    let row_bytes = 3 * width;
    let mut rows = vec![0_u8; row_bytes * (height + 1)];
    for (y, line) in raw.chunks(row_bytes + 1).enumerate() {
        // The row above the first one is all zero.
        let (above, row) = rows[y * row_bytes..(y + 2) * row_bytes].split_at_mut(row_bytes);
        for x in 0..row_bytes {
            let before = |row: &[u8]| if x < 3 { 0 } else { row[x - 3] };
            let (left, up, corner) = (before(row), above[x], before(above));
            let predicted = match line[0] {
                0 => 0,
                1 => left,
                2 => up,
                3 => u16::midpoint(left.into(), up.into()) as u8,
                4 => paeth(left, up, corner),
                other => panic!("filter {other}"),
            };
            row[x] = line[x + 1].wrapping_add(predicted);
        }
    }
    let pixels = rows[row_bytes..].chunks(3);
    Pixels {
        width,
        all: pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
    }
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let sum = i16::from(left) + i16::from(up) - i16::from(corner);
    let mut nearest = left;
    for other in [up, corner] {
        let distance = |value: u8| (sum - i16::from(value)).abs();
        if distance(other) < distance(nearest) {
            nearest = other;
        }
    }
    nearest
}

/// An archive with two requests that have all phases.
fn archive() -> Value {
    let entry = |n: u32| {
        json!({
            "pageref": "p", "startedDateTime": format!("2026-01-01T00:00:00.{:03}Z", n * 100), "time": 300,
            "request": { "method": "GET", "url": format!("https://h.test/{n}"), "headers": [] },
            "response": { "status": if n == 0 { 200 } else { 404 }, "httpVersion": "h2", "headers": [],
                "content": { "size": 9, "mimeType": "text/html" } },
            "timings": { "blocked": 50, "dns": 50, "connect": 100, "ssl": 50, "send": 50, "wait": 50, "receive": 50 },
        })
    };
    json!({ "log": { "version": "1.2", "creator": { "name": "t", "version": "1" },
        "pages": [{ "id": "p", "startedDateTime": "2026-01-01T00:00:00.000Z", "title": "t",
            "pageTimings": { "onLoad": 350 } }],
        "entries": [entry(0), entry(1)] } })
}

/// Runs the binary under test; it writes `file` of a directory.
fn written(dir: &TempDir, words: &[&str], file: &str) -> String {
    let outcome = run(words);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    fs::read_to_string(dir.path().join(file)).expect("it was written")
}

fn shown(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// Colours of the phases in light, in their order.
const PHASES: [&str; 7] = [
    "#8b949e", "#0a7f7f", "#c2600a", "#8250df", "#57606a", "#1a7f37", "#0b62c4",
];

#[test]
fn waterfalls_are_drawn_by_librsvg() {
    let dir = TempDir::new();
    dir.write("a.har", archive().to_string());
    let (har, svg) = (shown(&dir, "a.har"), shown(&dir, "a.svg"));
    for targets in [&[har.as_str()][..], &["compare", &har, &har]] {
        let words = [&["waterfall"][..], targets, &["--svg", &svg]].concat();
        let picture = written(&dir, &words, "a.svg");
        let Some(pixels) = Pixels::of(&picture) else {
            return;
        };
        pixels.assert_readable(&format!("{targets:?}"));
        for colour in PHASES {
            let count = pixels.count(colour);
            assert!(count > 100, "{targets:?}: {count} pixels are {colour}");
        }
        assert!(picture.contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn charts_of_bench_are_drawn_by_librsvg() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 ok; }").start();
    let url = format!("http://127.0.0.1:{}/", server.port());
    let html = shown(&dir, "a.html");
    let page = written(
        &dir,
        &["bench", &url, "--duration", "0.3", "--html", &html],
        "a.html",
    );
    server.stop();
    // The charts of a page, as somebody copies them out of it.
    let charts: Vec<&str> = page.split("<svg ").skip(1).collect();
    assert!(charts.len() >= 2, "{page}");
    for chart in charts {
        let end = chart.find("</svg>").expect("its end");
        let chart = format!("<svg {}</svg>", &chart[..end]);
        let Some(pixels) = Pixels::of(&chart) else {
            return;
        };
        assert!(pixels.count("#ffffff") > pixels.all.len() / 2, "{chart}");
        assert_eq!(pixels.count("#000000"), 0, "{chart}");
        assert!(pixels.count("#0b62c4") > 100, "{chart}");
        assert!(pixels.count("#57606a") > 5, "text: {chart}");
    }
}

#[test]
fn maps_are_drawn_by_librsvg() {
    let mut map = RttMap::default();
    // Class by class, with its colour.
    let all = [
        (b"DE", 10, "#ffe547"),
        (b"PL", 30, "#fdb339"),
        (b"EG", 70, "#fd7f24"),
        (b"US", 120, "#eb514f"),
        (b"BR", 250, "#c63271"),
        (b"AU", 500, "#8f2697"),
    ];
    for (code, ms, _) in all {
        let figures = map.country_mut(Some(*code));
        (0..50).for_each(|_| figures.rtt.add(ms * 1000));
    }
    (0..5).for_each(|_| map.country_mut(Some(*b"RU")).rtt.add(1));
    let picture = map::svg(&map, &map::Options::default());
    let Some(pixels) = Pixels::of(&picture) else {
        return;
    };
    pixels.assert_readable("map");
    for (code, _, colour) in all {
        // More than the legend.
        let count = pixels.count(colour);
        assert!(
            count > 27 * 17 + 100,
            "{code:?}: {count} pixels are {colour}"
        );
    }
    let stripes = pixels.count("#9aa4af");
    // Edges of stripes are between both colours.
    assert!(stripes > 100, "{stripes} pixels are stripes of Russia");
    assert!(
        pixels.count("#eef1f4") > 10_000,
        "countries without samples"
    );
}

#[test]
fn pictures_of_the_documents_are_drawn_by_librsvg() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let files = fs::read_dir(folder).expect("the pictures").flatten();
    let is_svg = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "svg");
    let paths: Vec<PathBuf> = files.map(|file| file.path()).filter(is_svg).collect();
    assert!(paths.len() > 10, "{paths:?}");
    for path in paths {
        let name = path.file_name().expect("a file").to_string_lossy();
        let picture = fs::read_to_string(&path).expect("text");
        let Some(pixels) = Pixels::of(&picture) else {
            return;
        };
        pixels.assert_readable(&name);
        let wanted: &[&str] = match name.starts_with("waterfall") {
            true => &["#8b949e", "#1a7f37", "#a9cbf0"],
            // Text, and places in the configuration.
            false if name.starts_with("map") => &["#ffe547", "#eb514f", "#eef1f4"],
            false if name == "explain.svg" => &["#1f2328", "#656d76"],
            false => &["#1f2328"],
        };
        for colour in wanted {
            let count = pixels.count(colour);
            assert!(count > 50, "{name}: {count} pixels are {colour}");
        }
    }
}
