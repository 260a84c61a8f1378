//! Address databases: the first byte chooses the format of the rest, the next four are an address to look up.
//!
//! With any bytes, nothing panics, a result is inside the file, and an IPv4 address has the same result as its IPv6
//! form.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;

use geoip::legacy::{Legacy, TEXT_BYTES_MAX};
use geoip::mmdb::Mmdb;
use geoip::mmdb_data::{Data, Value};
use geoip::ranges::Ranges;

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, a, b, c, d], file)) = input.split_first_chunk::<5>() else {
        return;
    };
    let v4 = Ipv4Addr::new(a, b, c, d);
    let high = u128::from(v4.to_bits()) << 96;
    let addresses = [
        IpAddr::V4(v4),
        v4.to_ipv6_mapped().into(),
        IpAddr::V6(high.into()),
    ];
    match kind % 4 {
        0 => check_legacy(file, addresses),
        1 => check_mmdb(file, addresses),
        2 => check_data(file, usize::from(a)),
        _ => check_ranges(file, addresses),
    }
});

fn check_legacy(file: &[u8], addresses: [IpAddr; 3]) {
    let Some(database) = Legacy::open(file.to_vec()) else {
        return;
    };
    for ip in addresses.map(Some).into_iter().chain([None]) {
        assert_ne!(database.country(ip), Some(0));
        let city = database.city(ip);
        let texts = city.map(|city| [city.region, city.name, city.postal_code]);
        for text in texts
            .into_iter()
            .flatten()
            .flatten()
            .chain(database.name(ip))
        {
            assert!(text.len() <= TEXT_BYTES_MAX && !text.contains(&0));
        }
    }
    let [v4, mapped, _] = addresses.map(Some);
    assert_eq!(database.country(v4), database.country(mapped));
    assert_eq!(database.name(v4), database.name(mapped));
}

fn check_mmdb(file: &[u8], addresses: [IpAddr; 3]) {
    let Ok(database) = Mmdb::open(file.to_vec()) else {
        return;
    };
    for path in PATHS {
        let [v4, mapped, _] = addresses.map(|ip| check_value(database.value(ip, path), file));
        assert_eq!(v4, mapped);
    }
}

fn check_data(section: &[u8], offset: usize) {
    for path in PATHS {
        check_value(Data::new(section).find(offset, path), section);
    }
}

/// Checks that a value is no longer than its container. Returns its length.
fn check_value(value: Option<Value<'_>>, whole: &[u8]) -> Option<usize> {
    match value? {
        Value::Text(bytes) | Value::Bytes(bytes) => {
            assert!(bytes.len() <= whole.len());
            Some(bytes.len())
        }
        _ => None,
    }
}

fn check_ranges(file: &[u8], addresses: [IpAddr; 3]) {
    let Ok(ranges) = Ranges::read(file) else {
        return;
    };
    let [v4, mapped, v6] = addresses.map(|ip| ranges.code(ip));
    assert_eq!(v4, mapped);
    assert!(v4 != Some([0; 2]) && v6 != Some([0; 2]));
}

const PATHS: [&[&str]; 5] = [
    &[],
    &["country", "iso_code"],
    &["list", "-1"],
    &["list", "1", "name"],
    &["country", "0", "country"],
];
