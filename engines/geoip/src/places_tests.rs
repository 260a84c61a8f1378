//! Several databases of every format, made here: precedence, fields, errors.

use super::*;
use crate::testing::{Field, city, legacy, mmdb};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn map(entries: &[(&'static str, Field)]) -> Field {
    Field::Map(entries.to_vec())
}

/// A record of a country as MaxMind has it.
fn of_country(code: &'static str) -> Field {
    map(&[("country", map(&[("iso_code", Field::Text(code))]))])
}

/// A record of a city as MaxMind has it.
fn of_city(code: &'static str, subdivision: &'static str) -> Field {
    let first = map(&[("iso_code", Field::Text(subdivision))]);
    map(&[
        ("country", map(&[("iso_code", Field::Text(code))])),
        ("subdivisions", Field::Array(vec![first, map(&[])])),
    ])
}

fn of_system(number: u32, name: &'static str) -> Field {
    map(&[
        ("autonomous_system_number", Field::U32(number)),
        ("autonomous_system_organization", Field::Text(name)),
    ])
}

fn named<const N: usize>(files: [(&str, Vec<u8>); N]) -> Result<Places, PlacesError> {
    Places::read(files.map(|(name, bytes)| (name.to_owned(), bytes)))
}

fn places<const N: usize>(files: [(&str, Vec<u8>); N]) -> Places {
    named(files).expect("all are databases")
}

fn country_of(places: &Places, address: &str) -> Option<String> {
    let code = places.country(ip(address))?;
    Some(String::from_utf8(code.to_vec()).expect("capitals"))
}

fn location(country: &[u8; 2], subdivision: Option<&str>, operator: Option<&str>) -> Location {
    Location {
        country: Some(*country),
        subdivision: subdivision.map(str::to_owned),
        operator: operator.map(str::to_owned),
    }
}

#[test]
fn lists_of_both_families_are_searched() {
    let v4 = "167772160,184549375,FR\n184549376,184549376,UK\n";
    let v6 = "::ffff:b00:2,::ffff:b00:2,JP\n2001:db8::,2001:db8:ffff:ffff:ffff:ffff:ffff:ffff,DE\n";
    let both = places([("/4", v4.into()), ("/6", v6.into())]);
    assert_eq!(both.files().collect::<Vec<_>>(), ["/4", "/6"]);
    for (address, expected) in [
        ("10.0.0.0", Some("FR")),
        ("10.255.255.255", Some("FR")),
        ("::ffff:10.1.2.3", Some("FR")),
        ("9.255.255.255", None),
        // The United Kingdom's other code.
        ("11.0.0.0", Some("GB")),
        // A mapped address in a list of IPv6 is none: it is looked up as IPv4.
        ("11.0.0.2", None),
        ("::ffff:11.0.0.2", None),
        ("2001:db8::1", Some("DE")),
        ("2001:db9::", None),
        ("::", None),
    ] {
        assert_eq!(country_of(&both, address).as_deref(), expected, "{address}");
    }
}

#[test]
fn the_first_file_that_knows_the_country_counts() {
    let list = b"167772160,167772415,FR\n167772416,167772671,??\n".to_vec();
    let countries = mmdb(
        "GeoLite2-Country",
        24,
        true,
        &[
            ("10.0.0.0", 8, of_country("US")),
            ("2001:db8::", 32, of_country("JP")),
        ],
    );
    let old = legacy(1, &[("10.0.0.0", 7, vec![185])]);
    let first = places([
        ("/list", list.clone()),
        ("/new", countries.clone()),
        ("/old", old.clone()),
    ]);
    for (address, expected) in [
        ("10.0.0.1", Some("FR")),
        ("10.0.1.1", Some("US")),
        ("11.0.0.1", Some("RU")),
        ("2001:db8::1", Some("JP")),
        // The old database has no IPv6 addresses: `255.255.255.255` does not count in their place.
        ("2001:db9::1", None),
    ] {
        assert_eq!(
            country_of(&first, address).as_deref(),
            expected,
            "{address}"
        );
    }
    let last = places([("/old", old), ("/new", countries), ("/list", list)]);
    assert_eq!(country_of(&last, "10.0.0.1").as_deref(), Some("RU"));
}

#[test]
fn other_codes_are_no_country() {
    for code in [
        "??", "A1", "A2", "T1", "ZZ", "XX", "EU", "AP", "--", "us", "USA", "U", "",
    ] {
        let record = of_country(code);
        let networks = [("10.0.0.0", 8, record), ("11.0.0.0", 8, of_country("US"))];
        let one = places([("/m", mmdb("Country", 24, true, &networks))]);
        assert_eq!(country_of(&one, "10.0.0.1"), None, "{code}");
        assert_eq!(country_of(&one, "11.0.0.1").as_deref(), Some("US"));
        if code.len() == 2 {
            let list = format!("167772160,184549375,{code}\n").into_bytes();
            let one = places([("/list", list)]);
            assert_eq!(country_of(&one, "10.0.0.1"), None, "{code}");
        }
    }
    // The numbers of Europe, of anonymous proxies, and of a country.
    for (number, expected) in [(2, None), (244, None), (56, Some("DE"))] {
        let one = places([("/o", legacy(1, &[("10.0.0.0", 8, vec![number])]))]);
        assert_eq!(
            country_of(&one, "10.0.0.1").as_deref(),
            expected,
            "{number}"
        );
    }
}

#[test]
fn a_country_is_found_under_the_names_of_other_makers() {
    for record in [
        map(&[("country_code", Field::Text("SE"))]),
        map(&[("country", Field::Text("SE"))]),
        map(&[
            ("country", Field::Text("Sweden")),
            ("country_code", Field::Text("SE")),
        ]),
    ] {
        let one = places([(
            "/m",
            mmdb("country ipv4", 28, false, &[("10.0.0.0", 8, record)]),
        )]);
        assert_eq!(country_of(&one, "10.0.0.1").as_deref(), Some("SE"));
        assert_eq!(country_of(&one, "2001:db8::1"), None);
    }
}

#[test]
fn a_location_has_country_subdivision_and_operator() {
    let cities = mmdb(
        "GeoLite2-City",
        28,
        true,
        &[
            ("10.0.0.0", 8, of_city("US", "CA")),
            ("11.0.0.0", 8, of_city("DE", "BE")),
            ("12.0.0.0", 8, of_city("US", "\u{1b}[0m")),
            ("13.0.0.0", 8, of_city("US", "LONG")),
            ("14.0.0.0", 8, of_city("ZZ", "CA")),
            ("15.0.0.0", 8, of_city("GB", "ENG")),
        ],
    );
    let systems = mmdb(
        "GeoLite2-ASN",
        24,
        true,
        &[
            ("10.0.0.0", 8, of_system(3320, "Deutsche Telekom AG")),
            ("11.0.0.0", 8, of_system(64_496, "Bad\r\nName\u{1b}")),
            (
                "12.0.0.0",
                8,
                map(&[("autonomous_system_number", Field::U32(64_497))]),
            ),
            ("13.0.0.0", 8, of_system(64_498, "")),
        ],
    );
    let all = places([("/asn", systems), ("/city", cities)]);
    for (address, expected) in [
        (
            "10.0.0.1",
            location(b"US", Some("US-CA"), Some("AS3320 Deutsche Telekom AG")),
        ),
        (
            "11.0.0.1",
            location(
                b"DE",
                Some("DE-BE"),
                Some("AS64496 Bad\u{fffd}\u{fffd}Name\u{fffd}"),
            ),
        ),
        ("12.0.0.1", location(b"US", None, Some("AS64497"))),
        ("13.0.0.1", location(b"US", None, Some("AS64498"))),
        ("14.0.0.1", Location::default()),
        ("15.0.0.1", location(b"GB", Some("GB-ENG"), None)),
        ("16.0.0.1", Location::default()),
    ] {
        assert_eq!(all.find(ip(address)), expected, "{address}");
    }
    assert_eq!(all.find(ip("::ffff:10.0.0.1")), all.find(ip("10.0.0.1")));
}

#[test]
fn a_subdivision_is_of_the_country_that_counts() {
    let cities = mmdb(
        "GeoLite2-City",
        24,
        true,
        &[("10.0.0.0", 8, of_city("US", "CA"))],
    );
    let list = b"167772160,167772160,FR\n".to_vec();
    let both = places([("/list", list), ("/city", cities)]);
    assert_eq!(both.find(ip("10.0.0.0")), location(b"FR", None, None));
    assert_eq!(
        both.find(ip("10.0.0.1")),
        location(b"US", Some("US-CA"), None)
    );
}

#[test]
fn older_databases_have_subdivisions_and_operators() {
    let cities = legacy(
        2,
        &[
            ("10.0.0.0", 8, city(225, [b"CA", b"X", b""], [0.0; 2], 0)),
            // A code of FIPS 10-4 is none of ISO 3166-2.
            (
                "11.0.0.0",
                8,
                city(185, [b"48", b"Moscow", b""], [0.0; 2], 0),
            ),
        ],
    );
    let systems = legacy(9, &[("10.0.0.0", 8, b"AS64496 Caf\xe9\0".to_vec())]);
    let both = places([("/city", cities), ("/asn", systems)]);
    assert_eq!(
        both.find(ip("10.0.0.1")),
        location(b"US", Some("US-CA"), Some("AS64496 Café"))
    );
    assert_eq!(both.find(ip("11.0.0.1")), location(b"RU", None, None));
    assert_eq!(both.find(ip("2001:db8::1")), Location::default());
}

#[test]
fn providers_have_names_without_a_number() {
    for (record, expected) in [
        (
            map(&[
                ("isp", Field::Text("Provider")),
                ("organization", Field::Text("Owner")),
            ]),
            Some("Provider"),
        ),
        (
            map(&[("organization", Field::Text("Owner"))]),
            Some("Owner"),
        ),
        (
            map(&[
                ("asn", Field::Text("AS64496")),
                ("as_name", Field::Text("Example")),
            ]),
            Some("AS64496 Example"),
        ),
        (
            map(&[
                ("asn", Field::Text("<b>")),
                ("as_name", Field::Text("Example")),
            ]),
            Some("Example"),
        ),
    ] {
        let one = places([(
            "/m",
            mmdb("GeoIP2-ISP", 24, true, &[("10.0.0.0", 8, record)]),
        )]);
        assert_eq!(one.find(ip("10.0.0.1")).operator.as_deref(), expected);
    }
}

#[test]
fn an_error_names_the_file_and_the_reason() {
    let good = || ("/good", b"1,2,US\n".to_vec());
    let of = |kind, record| mmdb(kind, 24, true, &[("10.0.0.0", 8, record)]);
    let odd = b"\xff\xff\xff\x08".to_vec();
    let mut cut = of("GeoLite2-Country", of_country("US"));
    cut.drain(..40);
    for (bytes, expected) in [
        (Vec::new(), "\"/bad\": the file is empty"),
        (
            b"# only\n\n# comments\n".to_vec(),
            "\"/bad\": the list has no ranges",
        ),
        (
            b"hello\n".to_vec(),
            "\"/bad\": line 1 is no range with a country",
        ),
        (
            b"1,2,US\n3,4,USA\n".to_vec(),
            "\"/bad\": line 2 is no range with a country",
        ),
        (vec![0; 100], "\"/bad\": the format is not known"),
        (
            b"\x1f\x8b\x08\x00garbage".to_vec(),
            "\"/bad\": the format is not known",
        ),
        (
            cut,
            "\"/bad\": the MaxMind DB file contains invalid metadata",
        ),
        (
            odd,
            "\"/bad\": a database of type \"8\" has neither countries nor network operators",
        ),
        (
            of(
                "GeoIP2-Connection-Type",
                map(&[("connection_type", Field::Text("Dialup"))]),
            ),
            "\"/bad\": a database of type \"GeoIP2-Connection-Type\" has neither countries nor network operators",
        ),
        // By its type it has operators alone.
        (
            of("GeoLite2-ASN", of_country("US")),
            "\"/bad\": a database of type \"GeoLite2-ASN\" has neither countries nor network operators",
        ),
    ] {
        let error = named([good(), ("/bad", bytes)]).expect_err("one is wrong");
        assert_eq!(error.to_string(), expected);
    }
    let none = named([]).expect_err("no file");
    assert_eq!(none, PlacesError::NotInstalled);
    assert!(
        none.to_string().contains("apt-get install tor-geoipdb"),
        "{none}"
    );
}

#[test]
fn without_a_name_debians_files_are_read() {
    let none: [&str; 0] = [];
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let list = b"1,2,US\n".to_vec();
    let installed = |there: &'static [&'static str]| {
        let list = list.clone();
        Places::open(&none, move |file| match there.contains(&file) {
            true => Ok(list.clone()),
            false => Err(missing()),
        })
    };
    let files = |places: Places| places.files().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        installed(&DEBIAN_FILES).map(files).as_deref(),
        Ok(&DEBIAN_FILES.map(str::to_owned)[..])
    );
    assert_eq!(
        installed(&DEBIAN_FILES[1..]).map(files).as_deref(),
        Ok(&[DEBIAN_FILES[1].to_owned()][..])
    );
    assert_eq!(installed(&[]).map(files), Err(PlacesError::NotInstalled));
    let denied = Places::open(&none, |_| Err(io::ErrorKind::PermissionDenied.into()));
    assert!(denied.is_err_and(|error| {
        error
            .to_string()
            .starts_with("\"/usr/share/tor/geoip\": permission denied")
    }));
    // A named file must exist; Debian's are not read in its place.
    let named = Places::open(&["/mine"], |file| match file {
        "/mine" => Err(missing()),
        _ => Ok(list.clone()),
    });
    assert!(matches!(named, Err(PlacesError::Unreadable { file, .. }) if file == "/mine"));
}

#[test]
fn databases_in_memory_are_shared() {
    let database = Arc::new(Database::open(b"1,2,US\n".to_vec()).expect("a list"));
    let files = ["/a", "/b"].map(|file| (file.to_owned(), Arc::clone(&database)));
    let both = Places::of_databases(files).expect("both are lists");
    assert_eq!(Arc::strong_count(&database), 3);
    assert_eq!(country_of(&both, "0.0.0.1").as_deref(), Some("US"));
}
