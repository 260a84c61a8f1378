//! `docs/store.md` against the store: its queries run, and its columns are those of the views.

use std::collections::BTreeSet;

use firstbyte_tests::TempDir;
use rusqlite::types::Value;
use store::{NAMES_MAX, NETWORK_ROWS_MAX, Retention, TEXT_BYTES_MAX};

use crate::rows::{NOON, file, maintain, open, row};

const DOCUMENT: &str = include_str!("../../../docs/store.md");

/// A store with 30 connections of two countries.
fn filled(dir: &TempDir) -> rusqlite::Connection {
    let mut store = open(&file(dir));
    let rows: Vec<_> = (0..30)
        .map(|n| row(NOON + n, if n < 10 { "DE" } else { "FR" }, 5000))
        .collect();
    store.insert(&rows).expect("they are stored");
    maintain(&mut store, NOON, &Retention::default());
    rusqlite::Connection::open(file(dir)).expect("it opens")
}

fn first_row(db: &rusqlite::Connection, sql: &str) -> Vec<Value> {
    let mut statement = db
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns = statement.column_count();
    statement
        .query_row([], |row| {
            (0..columns).map(|column| row.get(column)).collect()
        })
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn documented_queries_run() {
    let dir = TempDir::new();
    let db = filled(&dir);
    let queries: Vec<&str> = DOCUMENT
        .split("lab.db \"")
        .skip(1)
        .map(|rest| rest.split('"').next().expect("its end"))
        .collect();
    let [countries, operators] = queries[..] else {
        panic!("{queries:?}")
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let expected = [text("FR"), Value::Integer(20), Value::Integer(60)];
    assert_eq!(first_row(&db, countries), expected);
    let expected = [
        text("AS64496 Example"),
        Value::Integer(30),
        Value::Real(5.0),
        Value::Integer(30),
    ];
    assert_eq!(first_row(&db, operators), expected);
}

/// Names between backticks in the first column of a table.
fn names(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|line| {
        let first = line.split('|').nth(1).expect("a column");
        let parts: Vec<&str> = first.split('`').collect();
        parts
            .chunks(2)
            .filter_map(|pair| Some((*pair.get(1)?).to_owned()))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn documented_columns_are_those_of_the_views() {
    let dir = TempDir::new();
    let db = filled(&dir);
    let columns = |view: &str| -> BTreeSet<String> {
        let statement = db
            .prepare(&format!("SELECT * FROM {view}"))
            .expect("a view");
        statement.column_names().map(str::to_owned).collect()
    };
    let tables = DOCUMENT.split("\nView `").skip(1);
    let views = [
        "connections",
        "rollups",
        "open_connections",
        "experiments",
        "visits",
        "arm_minutes",
    ];
    assert_eq!(tables.clone().count(), views.len());
    for (table, view) in tables.zip(views) {
        assert!(table.starts_with(view), "{table}");
        let mut documented = names(table.split("\n\n").nth(1).expect("a table"));
        for (of_all, each) in [
            ("stalls_*", &["delayed_ack", "retransmit", "window"][..]),
            ("status_*", &["2xx", "3xx", "4xx", "5xx"]),
        ] {
            if documented.remove(of_all) {
                let names = each.iter().map(|name| of_all.replace('*', name));
                documented.extend(names);
            }
        }
        assert_eq!(columns(view), documented);
    }
}

#[test]
fn documented_numbers_are_true() {
    let dir = TempDir::new();
    let db = filled(&dir);
    let number = |name: &str| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .expect("a number")
    };
    let (application, version) = (number("application_id"), number("user_version"));
    let (millions, thousands, ones) = (
        NAMES_MAX / 1_000_000,
        NAMES_MAX / 1000 % 1000,
        NAMES_MAX % 1000,
    );
    let names = format!("{millions},{thousands:03},{ones:03}");
    for wanted in [
        format!("application_id` is {application}, "),
        format!("schema, is {version}."),
        format!("cut to {TEXT_BYTES_MAX} bytes"),
        format!("After {names} different texts"),
        format!("at most {},000 of a period", NETWORK_ROWS_MAX / 1000),
    ] {
        assert!(DOCUMENT.contains(&wanted), "{wanted}");
    }
}
