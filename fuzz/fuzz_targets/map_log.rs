//! Access logs: lines of any bytes, in formats of any text. Reading in pieces gives the same figures as reading the
//! whole, and no line is lost.
//!
//! The first line of an input is the format; an empty one is detected. Pieces end at bytes 0x01 of the rest.
#![no_main]

use std::net::IpAddr;

use lab::map::log::{Field, Format, LineFormat, Report, format_named, names, read_pieces};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n');
    let (format, log) = input.split_at(end.unwrap_or(input.len()));
    let log = log.strip_prefix(b"\n").unwrap_or(log);
    let Ok(format) = std::str::from_utf8(format) else {
        return;
    };
    let formats = || match format {
        "" => Some(None),
        name if names().split(", ").any(|own| own == name) => {
            Some(Some(vec![format_named(name, &Field::default())?.ok()?]))
        }
        text => {
            let format = Format::of_option(text).ok()?;
            let compiled = LineFormat::compile("own", &format, &Field::default());
            Some(Some(vec![compiled.ok()?]))
        }
    };
    let Some(whole) = formats() else { return };
    let whole = read(&[log], whole);
    let pieces: Vec<&[u8]> = log.split_inclusive(|byte| *byte == 1).collect();
    // A detected format may differ, since the first piece may have other lines.
    if !format.is_empty() {
        let cut = read(&pieces, formats().flatten());
        let (Ok(whole), Ok(cut)) = (&whole, &cut) else {
            panic!("a known format is not refused");
        };
        assert_eq!(whole.map, cut.map);
        assert_eq!(format!("{:?}", whole.counts), format!("{:?}", cut.counts));
    }
    if let Ok(report) = whole {
        check(&report, log);
    }
});

fn read(pieces: &[&[u8]], formats: Option<Vec<LineFormat>>) -> Result<Report, String> {
    read_pieces(pieces, formats, &Field::default(), &country)
}

fn country(ip: IpAddr) -> Option<[u8; 2]> {
    match ip {
        IpAddr::V4(ip) => Some([b'A' + ip.octets()[0] % 26, b'A']),
        IpAddr::V6(_) => None,
    }
}

fn check(report: &Report, log: &[u8]) {
    let is_blank = |line: &&[u8]| line.is_empty() || *line == b"\r";
    let lines = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !is_blank(line));
    assert_eq!(report.counts.lines, lines.count() as u64);
    let figures = || report.map.countries.values().chain([&report.map.unknown]);
    let requests: u64 = figures().map(|one| one.requests).sum();
    let samples: u64 = figures().map(|one| one.rtt.count()).sum();
    assert_eq!(requests, report.counts.usable());
    assert_eq!(samples, report.counts.minimum + report.counts.smoothed);
    assert!(samples + report.counts.proxied <= requests);
    assert_eq!(
        report.counts.first_damaged.is_some(),
        report.counts.damaged > 0
    );
}
