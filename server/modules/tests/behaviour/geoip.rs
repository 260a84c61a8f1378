//! `geoip_country`, `geoip_city`, `geoip_org` over databases of each format.

use crate::site::Site;
use crate::testing::{Field, city, legacy, mmdb};

const NAMES: [&str; 16] = [
    "country_code",
    "country_code3",
    "country_name",
    "org",
    "city_continent_code",
    "city_country_code",
    "city_country_code3",
    "city_country_name",
    "region",
    "region_name",
    "city",
    "postal_code",
    "latitude",
    "longitude",
    "dma_code",
    "area_code",
];

/// A site that answers with every variable, a `-` for each that has no value.
fn site(directives: &str, data: &[(&str, &[u8])]) -> Site {
    let fields: String = NAMES
        .iter()
        .map(|name| {
            format!("set $v_{name} $geoip_{name}; if ($v_{name} = '') {{ set $v_{name} -; }} ")
        })
        .collect();
    let all: Vec<String> = NAMES.iter().map(|name| format!("$v_{name}")).collect();
    Site::http_with(
        &format!(
            "{directives} geoip_proxy 192.0.2.1;
             server {{ location / {{ {fields} return 200 \"{}\"; }} }}",
            all.join("|")
        ),
        data,
    )
}

/// The values of the variables for an address.
fn about(site: &mut Site, ip: &str) -> String {
    site.get_with("/", &format!("X-Forwarded-For: {ip}\r\n"))
        .body
}

fn map(entries: &[(&'static str, Field)]) -> Field {
    Field::Map(entries.to_vec())
}

fn names(name: &'static str) -> Field {
    map(&[("de", Field::Text("anders")), ("en", Field::Text(name))])
}

const NOTHING: &str = "-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-";

#[test]
fn older_databases_have_all_of_it() {
    let country = legacy(1, &[("10.0.0.0", 8, vec![185]), ("11.0.0.0", 8, vec![10])]);
    let there = city(
        225,
        [b"CA", b"San Jos\xe9", b"95101"],
        [37.3387, -121.8914],
        807_408,
    );
    let cities = legacy(
        2,
        &[
            ("10.0.0.0", 8, there),
            ("11.0.0.0", 8, city(0, [b"", b"", b""], [0.0; 2], 0)),
        ],
    );
    let org = legacy(5, &[("10.0.0.0", 8, b"Caf\xe9\0".to_vec())]);
    let data: [(&str, &[u8]); 3] = [("/c", &country), ("/t", &cities), ("/o", &org)];
    let mut plain = site("geoip_country /c; geoip_city /t; geoip_org /o;", &data);
    // Texts are ISO 8859-1, which the test reads as replacement characters.
    assert_eq!(
        about(&mut plain, "10.0.0.1"),
        "RU|RUS|Russian Federation|Caf\u{fffd}|NA|US|USA|United States|CA|California|San Jos\u{fffd}|95101|\
         37.3387|-121.8914|807|408"
    );
    assert_eq!(
        about(&mut plain, "11.0.0.1"),
        "CW|CUW|Curacao|-|--|--|--|-|-|-|-|-|0.0000|0.0000|0|0"
    );
    assert_eq!(about(&mut plain, "12.0.0.1"), NOTHING);
    let mut utf8 = site(
        "geoip_country /c utf8; geoip_city /t utf8; geoip_org /o utf8;",
        &data,
    );
    assert!(
        about(&mut utf8, "10.0.0.1")
            .contains("|Café|NA|US|USA|United States|CA|California|San José|")
    );
    assert!(about(&mut utf8, "11.0.0.1").starts_with("CW|CUW|Curaçao|"));
}

#[test]
fn newer_databases_have_it_under_the_same_names() {
    let record = map(&[
        ("city", map(&[("names", names("San José"))])),
        ("continent", map(&[("code", Field::Text("NA"))])),
        (
            "country",
            map(&[
                ("iso_code", Field::Text("US")),
                ("names", names("United States")),
            ]),
        ),
        (
            "location",
            map(&[
                ("latitude", Field::Double(37.33874)),
                ("longitude", Field::Double(-121.89136)),
                ("metro_code", Field::U16(807)),
            ]),
        ),
        ("postal", map(&[("code", Field::Text("95101"))])),
        (
            "subdivisions",
            Field::Array(vec![map(&[
                ("iso_code", Field::Text("CA")),
                ("names", names("California")),
            ])]),
        ),
    ]);
    let cities = mmdb("GeoLite2-City", 28, true, &[("10.0.0.0", 8, record)]);
    let org = map(&[
        ("autonomous_system_number", Field::U32(64_496)),
        ("autonomous_system_organization", Field::Text("Café")),
    ]);
    let number = map(&[("autonomous_system_number", Field::U32(64_497))]);
    let org = mmdb(
        "GeoLite2-ASN",
        24,
        false,
        &[("10.0.0.0", 8, org), ("10.1.0.0", 16, number)],
    );
    let data: [(&str, &[u8]); 2] = [("/t", &cities), ("/o", &org)];
    // One file serves two directives.
    let mut site = site("geoip_country /t; geoip_city /t; geoip_org /o;", &data);
    assert_eq!(
        about(&mut site, "10.0.0.1"),
        "US|USA|United States|AS64496 Café|NA|US|USA|United States|CA|California|San José|95101|37.3387|-121.8914|807|-"
    );
    assert!(about(&mut site, "10.1.0.1").starts_with("US|USA|United States|AS64497|"));
    assert_eq!(about(&mut site, "12.0.0.1"), NOTHING);
    assert_eq!(about(&mut site, "2001:db8::1"), NOTHING);
}

#[test]
fn a_provider_stands_before_its_autonomous_system() {
    let record = map(&[
        ("autonomous_system_number", Field::U32(64_496)),
        ("isp", Field::Text("Provider")),
        ("organization", Field::Text("Owner")),
    ]);
    let isp = mmdb("GeoIP2-ISP", 24, true, &[("10.0.0.0", 8, record)]);
    let mut site = site("geoip_org /o;", &[("/o", &isp)]);
    assert_eq!(
        about(&mut site, "10.0.0.1"),
        "-|-|-|Owner|-|-|-|-|-|-|-|-|-|-|-|-"
    );
}

#[test]
fn countries_may_come_from_lists_of_ranges() {
    let v4 = b"# of Tor\n167772160,184549375,FR\n";
    let v6 = b"2001:db8::,2001:db8:ffff:ffff:ffff:ffff:ffff:ffff,CW\n";
    let data: [(&str, &[u8]); 2] = [("/4", v4), ("/6", v6)];
    let mut one = site("geoip_country /4;", &data);
    assert!(about(&mut one, "10.0.0.1").starts_with("FR|FRA|France|-|"));
    assert_eq!(about(&mut one, "2001:db8::1"), NOTHING);
    let mut both = site("geoip_country /6; geoip_country /4 utf8;", &data);
    assert!(about(&mut both, "10.255.255.255").starts_with("FR|FRA|"));
    assert!(about(&mut both, "2001:db8::1").starts_with("CW|CUW|Curaçao|"));
    for twice in [
        "/4; geoip_country /4",
        "/4; geoip_country /6; geoip_country /6",
    ] {
        let said = Site::refused_with(&format!("geoip_country {twice};"), &data);
        assert_eq!(said, "\"geoip_country\" directive is duplicate");
    }
}

#[test]
fn without_a_database_there_is_no_value() {
    assert_eq!(about(&mut site("", &[]), "10.0.0.1"), NOTHING);
}

#[test]
fn proxies_name_the_client() {
    let country = legacy(
        1,
        &[
            ("10.0.0.0", 8, vec![185]),
            ("192.0.2.1", 32, vec![225]),
            ("172.16.0.0", 12, vec![77]),
        ],
    );
    let text = |more: &str| {
        format!("geoip_country /c; {more} server {{ return 200 \"$geoip_country_code\"; }}")
    };
    let make = |more: &str| Site::http_with(&text(more), &[("/c", &country)]);
    let chain = "X-Forwarded-For: 10.0.0.1, 172.16.0.1\r\n";
    assert_eq!(make("").get_with("/", chain).body, "US");
    let mut last = make("geoip_proxy 192.0.2.0/24; geoip_proxy 172.16.0.0/12;");
    assert_eq!(last.get_with("/", chain).body, "GB");
    let mut recursive =
        make("geoip_proxy 192.0.2.0/24; geoip_proxy 172.16.0.0/12; geoip_proxy_recursive on;");
    assert_eq!(recursive.get_with("/", chain).body, "RU");
    assert_eq!(recursive.get("/").body, "US");
    // A client without an address counts as 255.255.255.255.
    assert_eq!(recursive.come_from("unix:").get("/").body, "");
}

#[test]
fn a_database_is_for_its_directive() {
    let of = |kind| mmdb(kind, 24, true, &[("10.0.0.0", 8, map(&[]))]);
    let (cities, numbers, other) = (of("GeoLite2-City"), of("GeoLite2-ASN"), of("My-Own"));
    let (old, odd) = (
        legacy(1, &[("10.0.0.0", 8, vec![1])]),
        b"\xff\xff\xff\x08".to_vec(),
    );
    let data: [(&str, &[u8]); 6] = [
        ("/cities", &cities),
        ("/numbers", &numbers),
        ("/other", &other),
        ("/old", &old),
        ("/odd", &odd),
        ("/list", b"1,2,US"),
    ];
    for sound in [
        "country /cities",
        "city /cities",
        "org /numbers",
        "country /old",
        "country /list",
        "country /other",
        "city /other",
        "org /other",
    ] {
        site(&format!("geoip_{sound};"), &data);
    }
    for (directive, kind) in [
        (
            "country /numbers",
            " database \"/numbers\" type:GeoLite2-ASN",
        ),
        (
            "city /numbers",
            " City database \"/numbers\" type:GeoLite2-ASN",
        ),
        ("org /cities", " database \"/cities\" type:GeoLite2-City"),
        ("city /old", " City database \"/old\" type:1"),
        ("org /old", " database \"/old\" type:1"),
        ("country /odd", " database \"/odd\" type:8"),
        ("city /list", " City database \"/list\" type:ranges"),
    ] {
        let said = Site::refused_with(&format!("geoip_{directive};"), &data);
        assert_eq!(said, format!("invalid GeoIP{kind}"));
    }
    let said = Site::refused_with("geoip_city /cities; geoip_city /cities;", &data);
    assert_eq!(said, "\"geoip_city\" directive is duplicate");
    let said = Site::refused_with("geoip_country /old; geoip_country /list;", &data);
    assert_eq!(said, "\"geoip_country\" directive is duplicate");
}
