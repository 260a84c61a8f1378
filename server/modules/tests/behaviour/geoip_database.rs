//! `geoip_database`: errors of databases of each format, and the warning if nothing is recorded.

use crate::site::Site;
use crate::testing::{Field, legacy, mmdb};

fn map(entries: &[(&'static str, Field)]) -> Field {
    Field::Map(entries.to_vec())
}

fn of_country(code: &'static str) -> Vec<u8> {
    let record = map(&[("country", map(&[("iso_code", Field::Text(code))]))]);
    mmdb("GeoLite2-Country", 24, true, &[("10.0.0.0", 8, record)])
}

#[test]
fn databases_without_a_recording_are_warned_of_once() {
    let (us, list) = (of_country("US"), b"167772160,167772160,FR\n");
    let data: [(&str, &[u8]); 2] = [("/us", &us), ("/list", list)];
    let lines = "geoip_database /us /list; geoip_database /us; geoip_country /list; server { }";
    let warnings = Site::warnings_with(lines, &data);
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(
        warning.contains("has no effect without \"rtt_map on\""),
        "{warning}"
    );
    let recorded = format!("rtt_map on; lab_store sqlite:/db; {lines}");
    assert_eq!(Site::warnings_with(&recorded, &data), Vec::<String>::new());
}

#[test]
fn a_file_that_is_no_database_of_visitors_is_refused_by_its_name() {
    let of = |kind, name| {
        let record = map(&[(name, Field::Text("x"))]);
        mmdb(kind, 24, true, &[("10.0.0.0", 8, record)])
    };
    let (types, mut cut) = (
        of("GeoIP2-Connection-Type", "connection_type"),
        of_country("US"),
    );
    cut.drain(..30);
    let odd = legacy(8, &[("10.0.0.0", 8, vec![1])]);
    let data: [(&str, &[u8]); 8] = [
        ("/good", b"1,2,US\n"),
        ("/none", b""),
        ("/comments", b"# none\n"),
        ("/garbage", b"\0\x01\x02"),
        ("/page", b"<html>\n"),
        ("/types", &types),
        ("/cut", &cut),
        ("/odd", &odd),
    ];
    let wrong = "has neither countries nor network operators";
    for (name, why) in [
        ("/missing", "2: No such file or directory".to_owned()),
        ("/none", "the file is empty".to_owned()),
        ("/comments", "the list has no ranges".to_owned()),
        ("/garbage", "the format is not known".to_owned()),
        ("/page", "line 1 is no range with a country".to_owned()),
        (
            "/types",
            format!("a database of type \"GeoIP2-Connection-Type\" {wrong}"),
        ),
        (
            "/cut",
            "the MaxMind DB file contains invalid metadata".to_owned(),
        ),
        ("/odd", format!("a database of type \"8\" {wrong}")),
    ] {
        let said = Site::refused_with(&format!("geoip_database /good {name};"), &data);
        assert_eq!(said, format!("geoip_database \"{name}\" failed ({why})"));
    }
}
