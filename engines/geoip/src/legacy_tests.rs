//! MaxMind's older databases, made by hand, whole and broken.

use super::*;
use crate::testing::{city, legacy};

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

fn open(bytes: Vec<u8>) -> Legacy {
    Legacy::open(bytes).expect("a database")
}

#[test]
fn countries_are_found_by_prefix() {
    let database = open(legacy(
        1,
        &[("10.0.0.0", 8, vec![185]), ("10.1.0.0", 16, vec![225])],
    ));
    assert_eq!(database.edition().kind, DatabaseKind::Country);
    for (address, country) in [
        ("10.0.0.1", Some(185)),
        ("10.1.255.255", Some(225)),
        ("10.2.0.0", Some(185)),
        ("11.0.0.0", None),
        ("::ffff:10.0.0.1", Some(185)),
        ("2001:db8::1", None),
    ] {
        assert_eq!(database.country(ip(address)), country, "{address}");
    }
    assert_eq!(database.country(None), None);
}

#[test]
fn an_address_that_an_edition_cannot_have_is_the_last_or_the_first() {
    let of_v4 = open(legacy(1, &[("255.255.255.255", 32, vec![7])]));
    assert_eq!(of_v4.country(ip("2001:db8::1")), Some(7));
    assert_eq!(of_v4.country(None), Some(7));
    let of_v6 = open(legacy(
        12,
        &[
            ("::", 128, vec![8]),
            ("10.0.0.0", 104, vec![185]),
            ("2001:db8::", 32, vec![225]),
        ],
    ));
    assert!(of_v6.edition().v6);
    assert_eq!(of_v6.country(None), Some(8));
    assert_eq!(of_v6.country(ip("10.9.9.9")), Some(185));
    assert_eq!(of_v6.country(ip("2001:db8:1::")), Some(225));
    assert_eq!(of_v6.country(ip("2001:db9::")), None);
}

#[test]
fn a_city_has_its_record() {
    let moscow = city(185, [b"48", b"Moscow", b"119034"], [55.7543, 37.6202], 0);
    let bare = city(56, [b"", b"", b""], [-180.0, 180.0], 0);
    let there = city(225, [b"CA", b"San Jos\xe9", b""], [37.3, -121.9], 807_408);
    let networks = [
        ("10.0.0.1", 32, moscow),
        ("10.0.0.2", 32, bare),
        ("10.0.0.3", 32, there),
    ];
    for number in [2, 6] {
        let database = open(legacy(number, &networks));
        let moscow = database.city(ip("10.0.0.1")).expect("it is there");
        assert_eq!((moscow.country, moscow.region), (185, Some(&b"48"[..])));
        assert_eq!(moscow.name, Some(&b"Moscow"[..]));
        assert_eq!(moscow.postal_code, Some(&b"119034"[..]));
        assert_eq!((moscow.latitude, moscow.longitude), (55.7543, 37.6202));
        let bare = database.city(ip("10.0.0.2")).expect("it is there");
        assert_eq!(
            (bare.region, bare.name, bare.postal_code),
            (None, None, None)
        );
        assert_eq!((bare.latitude, bare.longitude), (-180.0, 180.0));
        let there = database.city(ip("10.0.0.3")).expect("it is there");
        let areas = if number == 2 { (807, 408) } else { (0, 0) };
        assert_eq!((there.dma_code, there.area_code), areas);
        assert_eq!(database.city(ip("10.0.0.4")), None);
    }
    let database = open(legacy(
        30,
        &[(
            "2001:db8::",
            32,
            city(225, [b"", b"X", b""], [0.0; 2], 1001),
        )],
    ));
    let found = database.city(ip("2001:db8::1")).expect("it is there");
    assert_eq!((found.dma_code, found.area_code), (1, 1));
}

#[test]
fn a_name_is_found_in_each_edition_of_names() {
    for number in [4, 5, 9, 11] {
        let database = open(legacy(number, &[("10.0.0.1", 32, b"Example\0".to_vec())]));
        assert_eq!(
            database.name(ip("10.0.0.1")),
            Some(&b"Example"[..]),
            "{number}"
        );
        assert_eq!(database.name(ip("10.0.0.2")), None, "{number}");
    }
    for number in [21, 22, 23, 24] {
        let database = open(legacy(number, &[("::1", 128, b"\0".to_vec())]));
        assert_eq!(database.name(ip("::1")), Some(&b""[..]), "{number}");
        assert_eq!(database.name(ip("127.0.0.1")), None, "{number}");
    }
}

#[test]
fn a_text_is_bounded() {
    let name = |length: usize| {
        let bytes = [vec![b'x'; length], vec![0]].concat();
        let database = open(legacy(5, &[("10.0.0.1", 32, bytes)]));
        database.name(ip("10.0.0.1")).map(<[u8]>::len)
    };
    assert_eq!(name(TEXT_BYTES_MAX), Some(TEXT_BYTES_MAX));
    assert_eq!(name(TEXT_BYTES_MAX + 1), None);
}

#[test]
fn the_edition_is_found_near_the_end() {
    let mut bytes = legacy(1, &[("10.0.0.0", 8, vec![185])]);
    assert_eq!(open(bytes.clone()).edition().number, 1);
    let end = bytes.len();
    bytes[end - 1] = 106;
    assert_eq!(open(bytes.clone()).edition().number, 1);
    bytes[end - 1] = 8;
    assert_eq!(open(bytes.clone()).edition().kind, DatabaseKind::Other);
    // The mark may be followed by 19 bytes, its own three included in the window's first.
    let far = |more: usize| {
        let bytes = [&[0xff, 0xff, 0xff, 1][..], &vec![0; more]].concat();
        Legacy::open(bytes).is_some()
    };
    assert!(far(STRUCTURE_BYTES - 2));
    assert!(!far(STRUCTURE_BYTES - 1));
}

#[test]
fn what_is_no_database_is_refused() {
    for bytes in [
        &b""[..],
        b"\xff\xff",
        b"\xff\xff\xff",
        b"\xff\xff\xff\x02",
        b"\xff\xff\xff\x05\x01\x02",
        b"<!DOCTYPE html>",
        &[0; 4096],
    ] {
        assert!(Legacy::open(bytes.to_vec()).is_none(), "{bytes:?}");
    }
}

#[test]
fn a_database_cut_or_changed_anywhere_gives_an_answer_or_none() {
    let record = city(225, [b"CA", b"Town", b"1"], [1.0, 2.0], 3);
    for number in [1, 2, 5, 12, 30, 23] {
        let bytes = legacy(
            number,
            &[
                ("10.0.0.0", 14, record.clone()),
                ("::5", 128, record.clone()),
            ][..1 + usize::from(number > 11)],
        );
        let ask = |bytes: Vec<u8>| {
            if let Some(database) = Legacy::open(bytes) {
                for address in [ip("10.0.0.1"), ip("255.0.0.1"), ip("::5"), None] {
                    database.country(address);
                    database.city(address);
                    database.name(address);
                }
            }
        };
        for cut in 0..bytes.len() {
            ask(bytes[cut..].to_vec());
            ask([&bytes[..cut], &bytes[cut + 1..]].concat());
            for value in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[cut] = value;
                ask(changed);
            }
        }
    }
}
