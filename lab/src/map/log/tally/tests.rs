//! Figures of blocks, with damaged lines.

use super::*;
use crate::map::log::{Field, Format};

fn format(text: &str) -> LineFormat {
    let format = Format::of_option(text).expect("it is a format");
    LineFormat::compile("own", &format, &Field::default()).expect("it has the client")
}

fn country(ip: IpAddr) -> Option<CountryCode> {
    match ip {
        IpAddr::V4(ip) if ip.octets()[0] == 192 => Some(*b"DE"),
        IpAddr::V4(ip) if ip.octets()[0] == 198 => Some(*b"FR"),
        _ => None,
    }
}

fn counted(formats: &[LineFormat], text: &[u8]) -> (RttMap, Counts) {
    let mut tally = Tally::default();
    let origin = Origin { input: 3, line: 10 };
    tally.block(text, origin, formats, &country);
    let (mut map, mut counts) = Default::default();
    tally.add_to(&mut map, &mut counts);
    (map, counts)
}

#[test]
fn lines_are_counted_by_country() {
    let formats = [format("$remote_addr $tcpinfo_rtt")];
    let text = b"192.0.2.1 500\n198.51.100.1 -\n\n192.0.2.1 700\r\n203.0.113.1 9\nunix: -";
    let (map, counts) = counted(&formats, text);
    assert_eq!((counts.lines, counts.damaged, counts.smoothed), (5, 0, 3));
    let of = |code: &CountryCode| {
        let figures = &map.countries[code];
        (figures.requests, figures.rtt.count())
    };
    assert_eq!((of(b"DE"), of(b"FR")), ((2, 2), (1, 0)));
    assert_eq!((map.unknown.requests, map.unknown.rtt.count()), (2, 1));
}

/// Lines of JSON and of other formats are treated alike.
#[test]
fn samples_without_number_of_their_request_are_counted() {
    let object = "{\"remote_addr\":\"192.0.2.1\",\"tcpinfo_min_rtt\":500";
    for (format, bare, first, second) in [
        (
            LineFormat::json(&Field::default()),
            format!("{object}}}\n"),
            format!("{object},\"connection_requests\":1}}\n"),
            format!("{object},\"connection_requests\":2}}\n"),
        ),
        (
            format("$remote_addr $tcpinfo_min_rtt $connection_requests"),
            String::new(),
            "192.0.2.1 500 1\n".to_owned(),
            "192.0.2.1 500 2\n".to_owned(),
        ),
    ] {
        let text = bare.repeat(3) + &first.repeat(2) + &second;
        let (_, counts) = counted(&[format], text.as_bytes());
        let unnumbered = if bare.is_empty() { 0 } else { 3 };
        assert_eq!(
            (counts.unnumbered, counts.minimum),
            (unnumbered, 2 + unnumbered)
        );
    }
    let formats = [format("$remote_addr $tcpinfo_min_rtt")];
    let (_, counts) = counted(&formats, b"192.0.2.1 500\n192.0.2.1 -\n");
    assert_eq!((counts.unnumbered, counts.minimum), (1, 1));
}

#[test]
fn damaged_lines_are_skipped_and_the_first_is_shown() {
    let formats = [format("$remote_addr $status")];
    let text = b"192.0.2.1 200\n192.0.2.1\n\x00\x01\n192.0.2.300 200\n192.0.2.1 200\n";
    let (map, counts) = counted(&formats, text);
    assert_eq!((counts.lines, counts.damaged, counts.usable()), (5, 3, 2));
    assert_eq!(map.countries[b"DE"].requests, 2);
    let first = counts.first_damaged.expect("there is one");
    assert_eq!((first.input, first.line), (3, 11));
    assert_eq!(
        (first.fault, &first.text[..]),
        (Fault::Form, &b"192.0.2.1"[..])
    );
}

#[test]
fn each_fault_has_its_reason() {
    let formats = [format("$remote_addr \"$uri\"")];
    for (line, fault) in [
        (&b"192.0.2.1 \""[..], Fault::Form),
        (b"192.0.2.300 \"\"", Fault::Client),
        (b"192.0.2.1 \"\x00\"", Fault::Nul),
    ] {
        let first = counted(&formats, line).1.first_damaged;
        assert_eq!(first.expect("it is damaged").fault, fault);
    }
}

#[test]
fn length_of_lines_has_a_limit() {
    let formats = [format("$remote_addr $uri")];
    for (length, damaged) in [
        (LINE_BYTES_MAX - 1, 0),
        (LINE_BYTES_MAX, 0),
        (LINE_BYTES_MAX + 1, 1),
    ] {
        for end in ["", "\n", "\r\n"] {
            let begin = "192.0.2.1 /";
            let line = begin.to_owned() + &"a".repeat(length - begin.len()) + end;
            let (_, counts) = counted(&formats, line.as_bytes());
            assert_eq!((counts.lines, counts.damaged), (1, damaged), "{length}");
        }
    }
}

#[test]
fn lines_of_several_formats_are_read_by_the_first_that_fits() {
    let formats = [
        format("$remote_addr $tcpinfo_rtt"),
        format("$status|$remote_addr"),
    ];
    let text = b"192.0.2.1 500\n200|198.51.100.1\n200|x\n";
    let (map, counts) = counted(&formats, text);
    assert_eq!((counts.damaged, map.countries.len()), (0, 2));
    assert_eq!(map.unknown.requests, 1);
}

#[test]
fn clients_of_late_keep_their_countries() {
    let formats = [format("$remote_addr -")];
    let text: String = (0..100_000_u32)
        .map(|n| {
            format!(
                "{}.0.{}.{} -\n",
                [192, 198, 10][n as usize % 3],
                n >> 8 & 255,
                n & 255
            )
        })
        .collect();
    let (map, _) = counted(&formats, text.repeat(2).as_bytes());
    let of = |figures: &CountryFigures| figures.requests;
    assert_eq!(of(&map.countries[b"DE"]), 2 * 33_334);
    assert_eq!(of(&map.countries[b"FR"]), 2 * 33_333);
    assert_eq!(of(&map.unknown), 2 * 33_333);
}
