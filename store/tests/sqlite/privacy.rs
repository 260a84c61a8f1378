//! No full address is stored, and hostile texts are only texts.

use std::fs;
use std::net::IpAddr;

use firstbyte_tests::TempDir;
use store::{
    Connection, Dimension, Grouping, NAMES_MAX, Network, Prefixes, Query, Retention, Store,
    TEXT_BYTES_MAX,
};

use crate::rows::{NOON, file, maintain, open, row};

/// Bytes of all files of a store.
fn bytes(dir: &TempDir) -> Vec<u8> {
    let entries = fs::read_dir(dir.path()).expect("a directory");
    entries
        .flat_map(|entry| fs::read(entry.expect("an entry").path()).expect("a file"))
        .collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn full_addresses_are_in_no_file() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let clients = [
        "198.51.100.77",
        "2001:db8:1234:5678::9abc",
        "::ffff:203.0.113.99",
    ];
    let clients = clients.map(|client| client.parse::<IpAddr>().expect("an address"));
    let rows: Vec<Connection> = clients
        .into_iter()
        .map(|client| Connection {
            network: Some(Network::of(client, Prefixes::default())),
            ..row(NOON, "DE", 5)
        })
        .collect();
    store.insert(&rows).expect("they are stored");
    let mut all = bytes(&dir);
    maintain(&mut store, NOON, &Retention::default());
    all.extend(bytes(&dir));
    drop(store);
    all.extend(bytes(&dir));
    for network in ["198.51.100.0/24", "2001:db8:1234::/48", "203.0.113.0/24"] {
        assert!(contains(&all, network.as_bytes()), "{network}");
    }
    for client in clients {
        let text = client.to_canonical().to_string();
        assert!(!contains(&all, text.as_bytes()), "{text}");
        assert!(!contains(&all, client.to_string().as_bytes()), "{client}");
        let binary = match client.to_canonical() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        assert!(!contains(&all, &binary), "{client}");
        let reversed: Vec<u8> = binary.into_iter().rev().collect();
        assert!(!contains(&all, &reversed), "{client}");
    }
}

#[test]
fn dropped_networks_are_null() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut without = row(NOON, "DE", 5);
    without.network = None;
    store.insert(&[without]).expect("it is stored");
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    let network: Option<String> = db
        .query_row("SELECT network FROM connections", [], |row| row.get(0))
        .expect("a row");
    assert_eq!(network, None);
}

#[test]
fn hostile_texts_come_back() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let texts = [
        "'; DROP TABLE connection; --",
        "\" OR 1=1 --",
        "a\0b",
        "<script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "\u{202e}\u{feff}\n\r\t\u{1b}[31m",
        "?1 ?2 :a @b $c %s",
        "(other)",
    ];
    for text in texts {
        let mut hostile = row(NOON, "';", 5);
        hostile.server = text.to_owned();
        hostile.operator = text.to_owned();
        hostile.subdivision = text.to_owned();
        hostile.protocol = text.to_owned();
        hostile.tls = text.to_owned();
        store.insert(&[hostile]).expect("it is stored");
        for dimension in [
            Dimension::Operator,
            Dimension::Subdivision,
            Dimension::Country,
        ] {
            let query = Query {
                to_s: u64::MAX,
                grouping: Grouping::Dimension(dimension),
                server: Some(text.to_owned()),
                protocol: Some(text.to_owned()),
                ..Query::default()
            };
            let answer = store.answer(&query).expect("an answer");
            let [group] = &answer.groups[..] else {
                panic!("{text:?}: {answer:?}")
            };
            let expected = match dimension {
                Dimension::Country => "';",
                _ => text,
            };
            assert_eq!((&*group.key, group.totals.connections), (expected, 1));
        }
        maintain(&mut store, NOON, &Retention::default());
    }
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    let stored: Vec<String> = db
        .prepare("SELECT server || subdivision || operator || protocol || tls FROM connections ORDER BY id")
        .and_then(|mut rows| rows.query_map([], |row| row.get(0))?.collect())
        .expect("rows");
    assert_eq!(stored, texts.map(|text| text.repeat(5)));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let lengths = [TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX, TEXT_BYTES_MAX + 1];
    for length in lengths {
        let mut long = row(NOON, "DE", 5);
        long.operator = "x".repeat(length - 2) + "\u{e9}";
        assert_eq!(long.operator.len(), length);
        store.insert(&[long]).expect("it is stored");
    }
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    let sql = "SELECT length(CAST(operator AS BLOB)) FROM connections ORDER BY id";
    let stored: Vec<i64> = db
        .prepare(sql)
        .and_then(|mut rows| rows.query_map([], |row| row.get(0))?.collect())
        .expect("rows");
    let expected = [TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX, TEXT_BYTES_MAX - 1];
    assert_eq!(stored, expected.map(|length| length as i64));
}

#[test]
fn names_end_at_their_limit() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let db = rusqlite::Connection::open(file(&dir)).expect("it opens");
    db.execute("INSERT INTO name VALUES (?1, 'nearly')", [NAMES_MAX - 1])
        .expect("a name");
    let operator = |text: &str| Connection {
        operator: text.to_owned(),
        server: String::new(),
        protocol: String::new(),
        tls: String::new(),
        country: None,
        ..row(NOON, "", 5)
    };
    let operators = ["last", "late", "nearly", "late"];
    store
        .insert(&operators.map(operator))
        .expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
    let stored: Vec<String> = db
        .prepare("SELECT operator FROM connections ORDER BY id")
        .and_then(|mut rows| rows.query_map([], |row| row.get(0))?.collect())
        .expect("rows");
    assert_eq!(stored, ["last", "(other)", "nearly", "(other)"]);
}
