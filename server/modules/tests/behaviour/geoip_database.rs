//! `geoip_database` over databases of each format: order, sharing, errors.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use geoip::Places;
use server_modules::geoip_database::{files, places};

use crate::site::Site;
use crate::testing::{Field, legacy, mmdb};

fn map(entries: &[(&'static str, Field)]) -> Field {
    Field::Map(entries.to_vec())
}

fn of_country(code: &'static str) -> Vec<u8> {
    let record = map(&[("country", map(&[("iso_code", Field::Text(code))]))]);
    mmdb("GeoLite2-Country", 24, true, &[("10.0.0.0", 8, record)])
}

fn of_system(number: u32) -> Vec<u8> {
    let record = map(&[("autonomous_system_number", Field::U32(number))]);
    mmdb("GeoLite2-ASN", 24, true, &[("10.0.0.0", 8, record)])
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[track_caller]
fn all(site: &Site) -> &Arc<Places> {
    places(&site.generation().http).expect("a directive names files")
}

#[test]
fn files_of_all_directives_are_searched_in_order() {
    let (us, system) = (of_country("US"), of_system(64_496));
    let data: [(&str, &[u8]); 4] = [
        ("/list", b"167772160,167772160,FR\n"),
        ("/us", &us),
        ("/system", &system),
        // A relative path is below the prefix.
        ("/usr/share/nginx/below", b"184549376,184549376,JP\n"),
    ];
    let site = Site::http_with(
        "geoip_database /list /system; geoip_database below /us;",
        &data,
    );
    let names = ["/list", "/system", "/usr/share/nginx/below", "/us"].map(Path::new);
    assert_eq!(files(&site.generation().http), names);
    for (address, country) in [
        ("10.0.0.0", Some(*b"FR")),
        ("10.0.0.1", Some(*b"US")),
        ("11.0.0.0", Some(*b"JP")),
        ("11.0.0.1", None),
    ] {
        assert_eq!(all(&site).country(ip(address)), country, "{address}");
    }
    let found = all(&site).find(ip("10.0.0.0"));
    assert_eq!(found.operator.as_deref(), Some("AS64496"));
}

#[test]
fn without_the_directive_there_are_no_databases() {
    let site = Site::http("");
    let http = &site.generation().http;
    assert!(places(http).is_none() && files(http).is_empty());
}

#[test]
fn a_file_of_several_directives_is_in_memory_once() {
    let (us, list) = (of_country("US"), b"167772160,167772160,FR\n");
    let data: [(&str, &[u8]); 2] = [("/us", &us), ("/list", list)];
    let holders = |text: &str| {
        let site = Site::http_with(text, &data);
        let counts = all(&site).databases().map(Arc::strong_count).collect();
        let names = files(&site.generation().http).len();
        (counts, names)
    };
    assert_eq!(holders("geoip_database /us;"), (vec![1], 1));
    assert_eq!(
        holders("geoip_database /us /us; geoip_database /us;"),
        (vec![1], 1)
    );
    for both in [
        "geoip_country /us; geoip_database /us;",
        "geoip_database /us; geoip_country /us;",
    ] {
        assert_eq!(holders(both), (vec![2], 1), "{both}");
    }
    // Lists, too, of which `geoip_country` takes two.
    let six = "geoip_country /list; geoip_database /us /list;";
    assert_eq!(holders(six), (vec![1, 2], 2));
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
