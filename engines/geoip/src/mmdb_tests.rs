//! MaxMind DB files, written here, whole and broken.

use super::*;
use crate::mmdb_data::{DEPTH_MAX, FIELDS_MAX};
use crate::testing::{BUILD_EPOCH, Field, head, metadata, mmdb};

fn open(bytes: Vec<u8>) -> Mmdb {
    Mmdb::open(bytes).expect("a database")
}

fn value<'a>(database: &'a Mmdb, ip: &str, path: &str) -> Option<Value<'a>> {
    let path: Vec<&str> = path.split_whitespace().collect();
    database.value(ip.parse().expect("an address"), &path)
}

fn named(name: &'static str) -> Field {
    Field::Map(vec![("name", Field::Text(name))])
}

#[test]
fn the_longest_prefix_counts_with_records_of_every_size() {
    let networks = [
        ("10.0.0.0", 8, named("ten")),
        ("10.1.0.0", 16, named("one")),
        ("2001:db8::", 32, named("six")),
    ];
    for record_bits in [24, 28, 32] {
        let database = open(mmdb("Test", record_bits, true, &networks));
        for (ip, name) in [
            ("10.0.0.1", Some("ten")),
            ("10.1.2.3", Some("one")),
            ("10.2.0.0", Some("ten")),
            ("::ffff:10.1.0.0", Some("one")),
            ("::10.1.0.0", Some("one")),
            ("11.0.0.0", None),
            ("2001:db8:ffff::", Some("six")),
            ("2001:db9::", None),
        ] {
            let expected = name.map(|name| Value::Text(name.as_bytes()));
            assert_eq!(value(&database, ip, "name"), expected, "{record_bits} {ip}");
        }
    }
    let database = open(mmdb("Test", 28, false, &networks[..2]));
    assert_eq!(
        value(&database, "10.1.0.1", "name"),
        Some(Value::Text(b"one"))
    );
    assert_eq!(value(&database, "2001:db8::", "name"), None);
}

#[test]
fn the_highest_bits_of_a_record_of_28_bits_are_in_the_middle() {
    let mut database = open(mmdb("Test", 28, false, &[("10.0.0.0", 8, named("ten"))]));
    database.bytes[..7].copy_from_slice(&[0x11, 0x22, 0x33, 0xa5, 0x44, 0x55, 0x66]);
    assert_eq!(database.record(0, false), 0x0a11_2233);
    assert_eq!(database.record(0, true), 0x0544_5566);
}

#[test]
fn a_file_tells_what_it_is() {
    let database = open(mmdb("GeoLite2-City", 24, true, &[("::", 1, named("x"))]));
    assert_eq!(database.database_type, "GeoLite2-City");
    assert_eq!(database.build_epoch, BUILD_EPOCH);
    // All of IPv4 is one record here.
    assert_eq!(
        value(&database, "192.0.2.1", "name"),
        Some(Value::Text(b"x"))
    );
}

#[test]
fn every_type_of_value_is_read() {
    let long: &'static str = Box::leak("x".repeat(70_000).into_boxed_str());
    let all = Field::Map(vec![
        ("text", Field::Text("é")),
        ("empty", Field::Text("")),
        ("middle", Field::Text(&long[..300])),
        ("long", Field::Text(long)),
        ("bytes", Field::Bytes(&[0, 255])),
        ("double", Field::Double(-1.5)),
        ("float", Field::Float(0.25)),
        ("u16", Field::U16(65_535)),
        ("u32", Field::U32(0)),
        ("u64", Field::U64(u64::MAX)),
        ("u128", Field::U128(1 << 100)),
        ("i32", Field::I32(-5)),
        ("yes", Field::Bool(true)),
        ("no", Field::Bool(false)),
        (
            "list",
            Field::Array(vec![Field::Text("a"), named("b"), Field::U16(3)]),
        ),
        ("map", named("inner")),
    ]);
    let database = open(mmdb("Test", 24, false, &[("10.0.0.0", 8, all)]));
    let middle = &long.as_bytes()[..300];
    for (path, expected) in [
        ("text", Some(Value::Text("é".as_bytes()))),
        ("empty", Some(Value::Text(b""))),
        ("middle", Some(Value::Text(middle))),
        ("long", Some(Value::Text(long.as_bytes()))),
        ("bytes", Some(Value::Bytes(&[0, 255]))),
        ("double", Some(Value::Double(-1.5))),
        ("float", Some(Value::Float(0.25))),
        ("u16", Some(Value::Unsigned(65_535))),
        ("u32", Some(Value::Unsigned(0))),
        ("u64", Some(Value::Unsigned(u64::MAX))),
        ("u128", Some(Value::Wide(1 << 100))),
        ("i32", Some(Value::Signed(-5))),
        ("yes", Some(Value::Bool(true))),
        ("no", Some(Value::Bool(false))),
        ("list", Some(Value::Array)),
        ("list 0", Some(Value::Text(b"a"))),
        ("list 1 name", Some(Value::Text(b"b"))),
        ("list -1", Some(Value::Unsigned(3))),
        ("list -3", Some(Value::Text(b"a"))),
        ("list 3", None),
        ("list -4", None),
        ("list x", None),
        ("map name", Some(Value::Text(b"inner"))),
        ("map name more", None),
        ("none", None),
        ("", Some(Value::Map)),
    ] {
        assert_eq!(value(&database, "10.0.0.1", path), expected, "{path}");
    }
}

#[test]
fn pointers_lead_to_fields_but_not_to_pointers() {
    // 0: "x"; 2: pointer to 0; 4: pointer to that pointer; 6: { pointer to "x": pointer to "x" }
    let section = [0x41, b'x', 0x20, 0, 0x20, 2, 0xe1, 0x20, 0, 0x20, 0];
    let data = Data::new(&section);
    let none: [&str; 0] = [];
    assert_eq!(data.find(2, &none), Some(Value::Text(b"x")));
    assert_eq!(data.find(4, &none), None);
    assert_eq!(data.find(6, &["x"]), Some(Value::Text(b"x")));
    // Pointers of each length.
    for (pointer, at) in [
        (&[0x21, 0x02][..], 0x102),
        (&[0x29, 0x00, 0x00], 2048 + 0x1_0000),
        (&[0x30, 0x00, 0x00, 0x01], 526_336 + 1),
        (&[0x38, 0x00, 0x00, 0x01, 0x00], 0x100),
    ] {
        let mut section = pointer.to_vec();
        section.resize(at, 0);
        section.extend([0x41, b'y']);
        assert_eq!(
            Data::new(&section).find(0, &none),
            Some(Value::Text(b"y")),
            "{at}"
        );
    }
}

#[test]
fn the_work_for_a_value_is_bounded() {
    let array = |count: usize| {
        let mut section = Vec::new();
        head(11, count, &mut section);
        section.resize(section.len() + count, 0xa0);
        section
    };
    let last = |count: usize| {
        let section = array(count);
        Data::new(&section).find(0, &["-1"]) == Some(Value::Unsigned(0))
    };
    assert!(last(FIELDS_MAX + 1));
    assert!(!last(FIELDS_MAX + 2));
    let nested = |depth: usize| {
        let mut section = Vec::new();
        head(11, 2, &mut section);
        for _ in 0..depth {
            head(11, 1, &mut section);
        }
        section.extend([0xa0, 0xa0]);
        Data::new(&section).find(0, &["1"]) == Some(Value::Unsigned(0))
    };
    assert!(nested(DEPTH_MAX));
    assert!(!nested(DEPTH_MAX + 1));
}

/// Entries of metadata.
type Entries = Vec<(&'static str, Field)>;

#[test]
fn what_is_no_such_file_is_refused() {
    let sound = |change: &dyn Fn(&mut Entries)| {
        let mut entries = vec![
            ("binary_format_major_version", Field::U16(2)),
            ("build_epoch", Field::U64(1)),
            ("database_type", Field::Text("Test")),
            ("ip_version", Field::U16(6)),
            ("node_count", Field::U32(2)),
            ("record_size", Field::U16(24)),
        ];
        change(&mut entries);
        Mmdb::open([vec![0; 28], metadata(&entries)].concat()).err()
    };
    assert_eq!(sound(&|_| ()), None);
    assert_eq!(
        sound(&|all| all[0].1 = Field::U16(3)),
        Some(Refused::Format)
    );
    assert_eq!(
        sound(&|all| all[3].1 = Field::U16(5)),
        Some(Refused::Metadata)
    );
    assert_eq!(
        sound(&|all| all[4].1 = Field::U32(3)),
        Some(Refused::Metadata)
    );
    assert_eq!(
        sound(&|all| all[4].1 = Field::U64(u64::MAX)),
        Some(Refused::Metadata)
    );
    assert_eq!(
        sound(&|all| all[5].1 = Field::U16(25)),
        Some(Refused::Format)
    );
    for missing in 1..6 {
        let refused = sound(&|all| drop(all.remove(missing)));
        assert_eq!(refused, Some(Refused::Metadata), "{missing}");
    }
    assert_eq!(Mmdb::open(Vec::new()).err(), Some(Refused::NoMetadata));
    let bare = METADATA_MARK.to_vec();
    assert_eq!(Mmdb::open(bare).err(), Some(Refused::Format));
    let far = |more: usize| {
        let bytes = [METADATA_MARK.to_vec(), vec![0; more]].concat();
        Mmdb::is_one(&bytes)
    };
    assert!(far(METADATA_BYTES_MAX - METADATA_MARK.len()));
    assert!(!far(METADATA_BYTES_MAX - METADATA_MARK.len() + 1));
}

#[test]
fn a_file_cut_or_changed_anywhere_gives_an_answer_or_none() {
    let record = Field::Map(vec![
        ("list", Field::Array(vec![named("a"), Field::Double(1.0)])),
        ("country", Field::Map(vec![("iso_code", Field::Text("US"))])),
    ]);
    let bytes = mmdb(
        "Test",
        28,
        true,
        &[("10.0.0.0", 4, record.clone()), ("2000::", 3, record)],
    );
    let ask = |bytes: Vec<u8>| {
        if let Ok(database) = Mmdb::open(bytes) {
            for ip in ["10.0.0.1", "2001::", "255.255.255.255", "::"] {
                for path in ["", "country iso_code", "list -1", "list 0 name"] {
                    value(&database, ip, path);
                }
            }
        }
    };
    for cut in 0..bytes.len() {
        ask(bytes[cut..].to_vec());
        ask([&bytes[..cut], &bytes[cut + 1..]].concat());
        for value in [0, 0x3f, 0xe1, 0xff] {
            let mut changed = bytes.clone();
            changed[cut] = value;
            ask(changed);
        }
    }
}
