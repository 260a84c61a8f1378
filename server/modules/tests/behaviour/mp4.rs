//! `mp4`: the response to a request for a part of a file. The cutting itself has tests beside its code.

use crate::site::Site;

/// A box.
fn mp4_box(kind: &str, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let size = (body.len() as u32 + 8).to_be_bytes();
    [&size[..], kind.as_bytes(), &body].concat()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// A film of ten samples of a second, each of `size` bytes, one in a chunk, with its metadata last.
fn film(size: u32) -> Vec<u8> {
    let data: Vec<u8> = (0..10)
        .flat_map(|n| vec![b'0' + n; size as usize])
        .collect();
    let offsets: Vec<u32> = (0..10).map(|n| 8 + n * size).collect();
    let header = |len: usize, at: usize| {
        let mut body = vec![0; len];
        body[at - 4..at].copy_from_slice(&1000_u32.to_be_bytes());
        body[at..at + 4].copy_from_slice(&10_000_u32.to_be_bytes());
        body
    };
    let stbl = mp4_box(
        "stbl",
        &[
            &mp4_box("stts", &[&numbers(&[0, 1, 10, 1000])]),
            &mp4_box("stsc", &[&numbers(&[0, 1, 1, 1, 1])]),
            &mp4_box("stsz", &[&numbers(&[0, size, 10])]),
            &mp4_box("stco", &[&numbers(&[0, 10]), &numbers(&offsets)]),
        ],
    );
    let mdia = mp4_box(
        "mdia",
        &[
            &mp4_box("mdhd", &[&header(24, 16)]),
            &mp4_box("minf", &[&stbl]),
        ],
    );
    let trak = mp4_box("trak", &[&mp4_box("tkhd", &[&header(84, 20)]), &mdia]);
    let moov = mp4_box("moov", &[&mp4_box("mvhd", &[&header(100, 16)]), &trak]);
    [mp4_box("mdat", &[&data]), moov].concat()
}

const CONF: &str = "location / { mp4; }";

#[test]
fn a_part_has_the_data_of_its_time_behind_its_metadata() {
    let mut site = Site::server(CONF).file_of_bytes("/www/a.mp4", &film(100));
    let whole = site.get("/a.mp4");
    assert_eq!(whole.bytes, film(100));
    for (target, samples) in [
        ("/a.mp4?start=3", "3456789"),
        ("/a.mp4?start=3.9999&x=1", "3456789"),
        ("/a.mp4?start=3&end=5", "34"),
        ("/a.mp4?end=2", "01"),
        ("/a.mp4?start=0", "0123456789"),
        ("/a.mp4?start=3&end=3", "3456789"),
        ("/a.mp4?start=3&end=1", "3456789"),
        ("/a.mp4?start=3&end=x", "3456789"),
    ] {
        let part = site.get(target);
        let data: Vec<u8> = samples.bytes().flat_map(|n| [n; 100]).collect();
        assert!(part.bytes.ends_with(&data), "{target}");
        let head = &part.bytes[..part.bytes.len() - data.len()];
        assert!(
            head.ends_with(b"mdat") && &head[4..8] == b"moov",
            "{target}"
        );
        assert_eq!(part.status, 200);
        assert_eq!(part.field("Content-Length"), part.bytes.len().to_string());
        // As in nginx, the time of the file and the length of the sent part.
        let (time, _) = whole
            .field("ETag")
            .split_once('-')
            .expect("it has two parts");
        assert_eq!(
            part.field("ETag"),
            format!("{time}-{:x}\"", part.bytes.len())
        );
    }
    // An invalid time is ignored.
    for target in [
        "/a.mp4?start=-1",
        "/a.mp4?start=",
        "/a.mp4?end=0",
        "/a.mp4?begin=3",
    ] {
        assert_eq!(site.get(target).bytes, film(100), "{target}");
    }
}

#[test]
fn ranges_are_those_of_the_part() {
    let mut site = Site::server(CONF).file_of_bytes("/www/a.mp4", &film(100));
    let part = site.get("/a.mp4?start=3").bytes;
    let len = part.len();
    for (range, from, to) in [
        ("0-9".to_owned(), 0, 10),
        ("-10".to_owned(), len - 10, len),
        (format!("{}-{}", len - 705, len - 601), len - 705, len - 600),
    ] {
        let answer = site.get_with("/a.mp4?start=3", &format!("Range: bytes={range}\r\n"));
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.bytes, part[from..to], "{range}");
        let wanted = format!("bytes {from}-{}/{len}", to - 1);
        assert_eq!(answer.field("Content-Range"), wanted);
    }
    // Several ranges in any order, across the generated part and the file.
    let ranges = format!("Range: bytes={}-{},0-7\r\n", len - 701, len - 690);
    let answer = site.get_with("/a.mp4?start=3", &ranges);
    let at = |wanted: &[u8]| {
        let found = answer.bytes.windows(wanted.len()).position(|w| w == wanted);
        found.unwrap_or_else(|| panic!("{}", answer.body))
    };
    assert_eq!(answer.status, 206);
    assert!(at(&part[len - 701..len - 689]) < at(&part[..8]));
    assert_eq!(
        answer.field("Content-Length"),
        answer.bytes.len().to_string()
    );
}

#[test]
fn what_cannot_be_cut_is_an_error_that_the_log_explains() {
    let broken = |size: u32| {
        let mut film = film(100);
        let at = film.windows(4).position(|w| w == b"stco");
        let at = at.expect("it has one") + 12;
        film[at + 12..at + 16].copy_from_slice(&size.to_be_bytes());
        film
    };
    let mut site = Site::server(CONF)
        .file_of_bytes("/www/a.mp4", &film(100))
        .file_of_bytes("/www/far.mp4", &broken(u32::MAX))
        .file_of_bytes("/www/text.mp4", b"this is no film at all")
        .file_of_bytes("/www/empty.mp4", b"");
    let cases = [
        (
            "/a.mp4?start=11",
            "\"/www/a.mp4\" mp4 start time exceeds file duration",
        ),
        (
            "/far.mp4?start=3",
            "too large chunk offset in \"/www/far.mp4\"",
        ),
        (
            "/text.mp4?start=3",
            "\"/www/text.mp4\" mp4 atom too large:1952999795",
        ),
        (
            "/empty.mp4?start=3",
            "no mp4 trak atoms were found in \"/www/empty.mp4\"",
        ),
    ];
    let log = site.logged(|site| {
        for (target, _) in cases {
            assert_eq!(site.get(target).status, 500, "{target}");
        }
    });
    for (target, said) in cases {
        assert!(log.contains(said), "{target}: {log}");
    }
    assert_eq!(site.get("/text.mp4").status, 200);
    assert_eq!(site.get("/none.mp4?start=1").status, 404);
    let post = "POST /a.mp4?start=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(site.send(post).status, 405);
}

#[test]
fn metadata_has_a_limit() {
    let moov = film(100).len() - 1000 - 8 - 8;
    for (limit, status) in [(moov, 200), (moov - 1, 500)] {
        let inner =
            format!("location / {{ mp4; mp4_buffer_size 100; mp4_max_buffer_size {limit}; }}");
        let mut site = Site::server(&inner).file_of_bytes("/www/a.mp4", &film(100));
        assert_eq!(site.get("/a.mp4?start=3").status, status, "{limit}");
    }
}

#[test]
fn directives_of_the_commercial_edition_are_refused() {
    for directive in ["mp4_limit_rate on;", "mp4_limit_rate_after 30s;"] {
        let error = Site::refused(directive);
        assert!(error.contains("ngx_http_mp4_module"), "{error}");
    }
}
