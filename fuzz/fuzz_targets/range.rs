//! Range fields, and the other small parsers of field values: ranges stay in bounds and never request more than
//! permitted; dates round-trip.
#![no_main]

use engines::http::{Ranges, etag_matches, http_date, parse_http_date, parse_range};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[size, max], value)) = input.split_first_chunk::<2>() else {
        return;
    };
    for size in [
        u64::from(size),
        u64::from(size) << 40,
        i64::MAX as u64,
        u64::MAX,
    ] {
        for max_ranges in [u64::from(max), u64::MAX] {
            check_range(value, size, max_ranges);
            let value = [b"bytes=", value].concat();
            check_range(&value, size, max_ranges);
        }
    }
    if let Some(unix_s) = parse_http_date(value)
        && unix_s >= 0
    {
        assert_eq!(parse_http_date(&http_date(unix_s)), Some(unix_s));
    }
    let _ = etag_matches([value, value].into_iter(), b"\"a\"", max & 1 == 0);
    let list: &[u8] = b"\"x\", W/\"a\"";
    assert!(etag_matches([list].into_iter(), b"\"a\"", true));
});

fn check_range(value: &[u8], size: u64, max_ranges: u64) {
    let in_bounds = |range: &std::ops::Range<u64>| range.start < range.end && range.end <= size;
    match parse_range(value, size, max_ranges) {
        Ranges::One(range) => assert!(max_ranges > 0 && in_bounds(&range)),
        Ranges::Many(ranges) => {
            assert!(ranges.len() > 1 && ranges.len() as u64 <= max_ranges);
            assert!(ranges.iter().all(in_bounds));
            let sum: u128 = ranges
                .iter()
                .map(|range| u128::from(range.end - range.start))
                .sum();
            assert!(sum <= u128::from(size), "more is sent than there is");
        }
        Ranges::None | Ranges::NotSatisfiable => {}
    }
}
