//! Lists of ranges as Tor has them, beside a plain search over their lines.
//!
//! The first four bytes are an address; the rest is the list. Each range of a valid list has its code from its first
//! address to its last one. Addresses beside it have the code of another range, or none.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use geoip::ranges::Ranges;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((address, text)) = input.split_first_chunk::<4>() else {
        return;
    };
    let Ok(list) = Ranges::read(text) else {
        return;
    };
    let ranges = ranges(text);
    assert_eq!(list.is_empty(), ranges.is_empty());
    let v4 = IpAddr::from(*address);
    check(&list, &ranges, v4);
    let high = u128::from(u32::from_be_bytes(*address)) << 96;
    check(&list, &ranges, IpAddr::V6(high.into()));
    for range in ranges.iter().take(RANGES_CHECKED) {
        for end in [range.first, range.last] {
            for address in [end.wrapping_sub(1), end, end.wrapping_add(1)] {
                check(&list, &ranges, range.address(address));
            }
        }
    }
});

/// A line of the list.
struct Range {
    v4: bool,
    first: u128,
    last: u128,
    code: [u8; 2],
}

impl Range {
    /// Returns an address of this range's family.
    fn address(&self, number: u128) -> IpAddr {
        if self.v4 {
            Ipv4Addr::from_bits(number as u32).into()
        } else {
            Ipv6Addr::from_bits(number).into()
        }
    }
}

/// Parses the lines of a valid list.
fn ranges(text: &[u8]) -> Vec<Range> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    lines.map(range).collect()
}

/// Parses a line.
fn range(line: &[u8]) -> Range {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    let [first, last, code] = words[..] else {
        panic!("a wrong line was read");
    };
    let v4 = !first.contains(&b':');
    let number = |word| {
        let word = str::from_utf8(word).expect("it was read");
        match v4 {
            true => u128::from(word.parse::<u32>().expect("it was read")),
            false => word.parse::<Ipv6Addr>().expect("it was read").to_bits(),
        }
    };
    Range {
        v4,
        first: number(first),
        last: number(last),
        code: code.try_into().expect("it was read"),
    }
}

/// Compares a lookup with a linear search.
fn check(list: &Ranges, ranges: &[Range], ip: IpAddr) {
    let (v4, number) = match ip.to_canonical() {
        IpAddr::V4(ip) => (true, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (false, ip.to_bits()),
    };
    let mut own = ranges.iter().filter(|range| range.v4 == v4);
    let found = own.find(|range| (range.first..=range.last).contains(&number));
    let code = found.map(|range| range.code);
    let code = code.filter(|code| code != b"??" && *code != [0; 2]);
    assert_eq!(list.code(ip), code, "{ip}");
}

/// Maximum number of checked ranges. Each costs a search of all.
const RANGES_CHECKED: usize = 32;
