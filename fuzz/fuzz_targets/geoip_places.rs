//! Several databases as one: three files of any bytes, and an address.
//!
//! The first four bytes are the address, the next two the lengths of two files in units of 16 bytes; a third file is the
//! rest. Whatever the files, nothing panics, countries have names, and texts are bounded and without control characters.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use geoip::{Location, OPERATOR_CHARS_MAX, Places, PlacesError, is_country, name_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[a, b, c, d, first, second], rest)) = input.split_first_chunk::<6>() else {
        return;
    };
    let (one, rest) = rest.split_at(rest.len().min(usize::from(first) * UNIT_BYTES));
    let (two, three) = rest.split_at(rest.len().min(usize::from(second) * UNIT_BYTES));
    let v4 = Ipv4Addr::new(a, b, c, d);
    let high = u128::from(v4.to_bits()) << 96;
    let addresses = [
        IpAddr::V4(v4),
        v4.to_ipv6_mapped().into(),
        IpAddr::V6(high.into()),
    ];
    let alone: Vec<_> = [one, two, three]
        .into_iter()
        .filter_map(|file| read(&[file]))
        .collect();
    for ip in addresses {
        for places in &alone {
            check(places, ip);
        }
    }
    let Some(all) = read(&[one, two, three]) else {
        assert!(
            alone.len() < 3,
            "three files are good alone, but not together"
        );
        return;
    };
    let [v4, mapped, v6] = addresses.map(|ip| check(&all, ip));
    assert_eq!(v4, mapped);
    let first = |ip| alone.iter().find_map(|places| places.country(ip));
    assert_eq!(v4.country, first(addresses[0]));
    assert_eq!(v6.country, first(addresses[2]));
});

/// Reads databases. An error names one of the files.
fn read(files: &[&[u8]]) -> Option<Places> {
    let named = files.iter().enumerate();
    let result = Places::read(named.map(|(n, bytes)| (format!("/{n}"), bytes.to_vec())));
    match result {
        Ok(places) => Some(places),
        Err(error) => {
            assert!(!matches!(error, PlacesError::NotInstalled));
            assert!(error.to_string().starts_with("\"/") && !error.reason().is_empty());
            None
        }
    }
}

/// Looks up an address and checks the form of its fields.
fn check(places: &Places, ip: IpAddr) -> Location {
    let found = places.find(ip);
    assert_eq!(found.country, places.country(ip));
    if let Some(code) = found.country {
        assert!(is_country(code) && name_of(code).is_some());
    }
    if let Some(subdivision) = &found.subdivision {
        let code = found.country.expect("a subdivision is of a country");
        assert!(subdivision.as_bytes().starts_with(&code) && (4..=6).contains(&subdivision.len()));
    }
    if let Some(operator) = &found.operator {
        let length = operator.chars().count();
        assert!((1..=OPERATOR_CHARS_MAX).contains(&length) && !operator.contains(char::is_control));
    }
    found
}

/// Unit of the lengths of files.
const UNIT_BYTES: usize = 16;
