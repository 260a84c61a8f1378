//! Outputs of made-up maps: colours of known values, the least number of samples, hostile texts.

use serde_json::Value;

use super::csv::cell;
use super::*;
use crate::map::world::{Country, countries};
use crate::map::{CountryCode, RttMap};
use crate::report::xml_tests::{Element, elements};

/// A map with this number of samples of a time in milliseconds by country, and as many requests.
fn map(all: &[(&CountryCode, u64, u64)]) -> RttMap {
    let mut map = RttMap::default();
    for (code, samples, ms) in all {
        let figures = map.country_mut(Some(**code));
        figures.requests = *samples;
        (0..*samples).for_each(|_| figures.rtt.add(ms * 1000));
    }
    map
}

/// Elements of the picture.
#[track_caller]
fn drawn(picture: &str) -> Vec<Element> {
    elements(picture).unwrap_or_else(|why| panic!("{why}: {picture}"))
}

/// The element of a country and its tooltip, of the last one: a marker is above its shape.
#[track_caller]
fn country<'a>(all: &'a [Element], name: &str) -> (&'a Element, &'a str) {
    let is_it = |pair: &&[Element]| pair[1].text.starts_with(&format!("{name}: "));
    let found = all.windows(2).rfind(|pair| is_it(&&pair[..]));
    let found = found.unwrap_or_else(|| panic!("{name} is on the map"));
    (&found[0], &found[1].text)
}

#[test]
fn known_medians_have_known_colours() {
    let all = [
        (b"DE", 5, "Germany", "#ffe547"),
        (b"FR", 20, "France", "#fdb339"),
        (b"US", 99, "United States", "#fd7f24"),
        (b"BR", 199, "Brazil", "#eb514f"),
        (b"IN", 200, "India", "#c63271"),
        (b"AU", 401, "Australia", "#8f2697"),
        // Small ones have a marker.
        (b"SG", 160, "Singapore", "#eb514f"),
        (b"MT", 40, "Malta", "#fdb339"),
    ];
    let made: Vec<_> = all.iter().map(|(code, ms, ..)| (*code, 100, *ms)).collect();
    let picture = svg(&map(&made), &Options::default());
    let shapes = drawn(&picture);
    for (_, ms, name, colour) in all {
        let (shape, tooltip) = country(&shapes, name);
        assert_eq!(shape.attributes["fill"], colour, "{name}");
        let is_small = ["Singapore", "Malta"].contains(&name);
        assert_eq!(shape.name, if is_small { "circle" } else { "path" });
        assert!(
            tooltip.contains(&format!("median {}", scale::Ms(ms as f64))),
            "{tooltip}"
        );
        assert!(tooltip.ends_with("100 samples, 100 requests"), "{tooltip}");
    }
    let (shape, tooltip) = country(&shapes, "Spain");
    assert_eq!(
        (shape.attributes["fill"].as_str(), tooltip),
        ("#eef1f4", "Spain: no samples")
    );
    assert!(!picture.contains("var(") && !picture.contains("<script"));
    let texts = [
        "Round-trip times by country",
        "800 samples from 8 countries.",
    ];
    assert!(texts.iter().all(|text| picture.contains(text)), "{picture}");
}

#[test]
fn each_country_with_samples_is_on_the_picture() {
    let codes: Vec<CountryCode> = countries().iter().map(|one| one.code).collect();
    let made: Vec<_> = codes.iter().map(|code| (code, 30, 70)).collect();
    let shapes = drawn(&svg(&map(&made), &Options::default()));
    for one in countries() {
        let (shape, _) = country(&shapes, geoip::name_of(one.code).expect("it has a name"));
        assert_eq!(shape.attributes["fill"], "#fd7f24", "{one:?}");
        assert_eq!(shape.name == "circle", Country::needs_marker(one));
    }
}

#[test]
fn countries_below_the_least_number_have_no_colour() {
    let made = map(&[
        (b"DE", 19, 30),
        (b"FR", 20, 30),
        (b"SG", 21, 30),
        (b"MT", 19, 30),
    ]);
    let options = Options::default();
    let shapes = drawn(&svg(&made, &options));
    for (name, fill) in [
        ("Germany", "url(#fewmap)"),
        ("France", "#fdb339"),
        ("Singapore", "#fdb339"),
        ("Malta", "url(#fewmap)"),
    ] {
        assert_eq!(country(&shapes, name).0.attributes["fill"], fill, "{name}");
    }
    assert!(
        country(&shapes, "Germany")
            .1
            .starts_with("Germany: too few samples; 19")
    );
    let report: Value = serde_json::from_str(&json(&made, &options)).expect("it is JSON");
    let enough = |code: &str| {
        let all = report["countries"].as_array().expect("an array");
        let found = all.iter().find(|one| one["country"] == code);
        found.expect("it has the country")["enough"].clone()
    };
    assert_eq!(
        [enough("DE"), enough("FR"), enough("SG")],
        [false, true, true]
    );
    let table = text(&made, &options);
    let line = |name: &str| {
        table
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line")
    };
    let words = |name| line(name).split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        words("Germany"),
        ["Germany", "19", "-", "-", "-", "-", "19"]
    );
    assert_eq!(words("France")[..3], ["France", "20", "30.0"]);
    assert!(table.contains("Countries with fewer than 20 samples have no colour."));
    // Zero would give a colour to no samples.
    for min_samples in [0, 1] {
        let options = Options {
            min_samples,
            ..Options::default()
        };
        let mut made = map(&[(b"DE", 1, 30)]);
        made.country_mut(Some(*b"FR")).requests = 9;
        let shapes = drawn(&svg(&made, &options));
        assert_eq!(country(&shapes, "Germany").0.attributes["fill"], "#fdb339");
        assert_eq!(country(&shapes, "France").0.attributes["fill"], "#eef1f4");
    }
}

#[test]
fn a_map_without_times_has_shares_of_requests() {
    let mut made = RttMap::default();
    for (code, requests) in [(b"DE", 900), (b"FR", 60), (b"SG", 19)] {
        made.country_mut(Some(*code)).requests = requests;
    }
    made.unknown.requests = 21;
    let options = Options::default();
    let picture = svg(&made, &options);
    let shapes = drawn(&picture);
    assert_eq!(country(&shapes, "Germany").0.attributes["fill"], "#8f2697");
    assert_eq!(country(&shapes, "France").0.attributes["fill"], "#c63271");
    assert_eq!(
        country(&shapes, "Singapore").0.attributes["fill"],
        "url(#fewmap)"
    );
    for words in [
        "Share of all requests",
        "No round-trip times",
        "fewer than 20 requests",
    ] {
        assert!(picture.contains(words), "{words}");
        assert!(html(&made, &options).contains(words), "{words}");
    }
    assert!(picture.contains("Country unknown: 0 samples, 21 requests."));
    let report: Value = serde_json::from_str(&json(&made, &options)).expect("it is JSON");
    assert_eq!(report["measure"], "requests");
    assert_eq!(report["countries"][0]["median_ms"], Value::Null);
    assert_eq!(report["unknown"]["requests"], 21);
    assert!(csv(&made, &options).contains("\"DE\",\"Germany\",0,,,,,,900,true\r\n"));
}

#[test]
fn figures_are_the_same_in_all_outputs() {
    let mut made = RttMap::default();
    let figures = made.country_mut(Some(*b"DE"));
    figures.requests = 250;
    (1..=100).for_each(|n| figures.rtt.add(n * 1000));
    made.unknown.requests = 3;
    let options = Options {
        source: "access.log".to_owned(),
        period: Some((1_767_225_600, 1_769_903_999)),
        warnings: vec!["a warning".to_owned()],
        ..Options::default()
    };
    let report: Value = serde_json::from_str(&json(&made, &options)).expect("it is JSON");
    let germany = &report["countries"][0];
    let near = |name: &str, wanted: f64| {
        let found = germany[name].as_f64().expect("a number");
        assert!((found / wanted - 1.0).abs() < 0.02, "{name}: {found}");
        found
    };
    let median = near("median_ms", 50.5);
    near("p80_ms", 80.5);
    near("p95_ms", 95.5);
    // Ranks 40 and 61 of 100.
    near("median_low_ms", 40.0);
    near("median_high_ms", 61.0);
    assert_eq!(
        (&report["format"], &report["source"]),
        (&"firstbyte-map/1".into(), &"access.log".into())
    );
    assert_eq!(report["period"]["first_unix_s"], 1_767_225_600_i64);
    assert_eq!(report["warnings"][0], "a warning");
    let table = csv(&made, &options);
    let lines: Vec<&str> = table.split("\r\n").collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(
        lines[1].starts_with(&format!("\"DE\",\"Germany\",100,{median:.3},")),
        "{table}"
    );
    assert_eq!(lines[2], "\"unknown\",\"unknown\",0,,,,,,3,false");
    for output in [svg, html, text] {
        let found = output(&made, &options);
        for words in [
            "access.log",
            "2026-01-01 00:00:00 to 2026-01-31 23:59:59 UTC",
            "a warning",
            "Country unknown: 0 samples, 3 requests.",
            "100",
        ] {
            assert!(found.contains(words), "{words}: {found}");
        }
    }
}

#[test]
fn empty_maps_and_extreme_figures_are_drawn() {
    let mut made = map(&[(b"DE", 30, 18_000_000_000_000)]);
    made.country_mut(Some(*b"DE")).requests = u64::MAX;
    made.unknown.requests = u64::MAX;
    let options = Options {
        min_samples: u64::MAX,
        period: Some((i64::MIN, i64::MAX)),
        ..Options::default()
    };
    for made in [RttMap::default(), made] {
        for options in [Options::default(), options.clone()] {
            drawn(&svg(&made, &options));
            for output in [html, text, csv] {
                assert!(!output(&made, &options).is_empty());
            }
            serde_json::from_str::<Value>(&json(&made, &options)).expect("it is JSON");
        }
    }
}

/// Texts that must stay texts.
const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "</title></style></svg><script>alert(1)</script>",
    "]]>&#x3c;script&#x3e;",
    "\u{202e}txt.exe\u{2066}\0\u{1}\u{1b}[31m\r\n\u{ffff}",
    "=cmd|'/C calc'!A0",
];
/// Codes of a damaged database.
const CODES: [&CountryCode; 7] = [b"<b", b"\"'", b"=1", b"\0\x1b", b"\xff\xfe", b"&l", b"\t="];

/// A map with hostile codes, and options of one hostile text.
fn hostile(text: &str) -> (RttMap, Options) {
    let made: Vec<_> = CODES.iter().map(|code| (*code, 30, 70)).collect();
    let options = Options {
        title: text.to_owned(),
        source: text.to_owned(),
        warnings: vec![text.to_owned(); 3],
        ..Options::default()
    };
    (map(&made), options)
}

#[test]
fn texts_of_others_stay_texts_in_pictures() {
    let plain = drawn(&svg(&hostile("plain").0, &hostile("plain").1));
    let names = |all: &[Element]| -> Vec<String> {
        let kept = all.iter().filter(|one| one.name != "text");
        kept.map(|one| one.name.clone()).collect()
    };
    for text in HOSTILE {
        let (made, options) = hostile(text);
        let all = drawn(&svg(&made, &options));
        assert_eq!(names(&all), names(&plain), "{text}");
        let is_event = |name: &String| name.starts_with("on");
        assert!(!all.iter().any(|one| one.attributes.keys().any(is_event)));
    }
    let long = Options {
        title: "\u{4e2d}".repeat(1_000_000),
        source: "<".repeat(1_000_000),
        warnings: vec!["\u{202e}".repeat(10_000); 1000],
        ..Options::default()
    };
    for output in [svg, html] {
        let (short, found) = (
            output(&RttMap::default(), &Options::default()),
            output(&RttMap::default(), &long),
        );
        assert!(
            found.len() < short.len() + 500_000,
            "{} {}",
            found.len(),
            short.len()
        );
    }
}

#[test]
fn texts_of_others_stay_texts_in_pages() {
    let tags = |page: &str| page.matches('<').count();
    let plain = html(&hostile("plain").0, &hostile("plain").1);
    for text in HOSTILE {
        let (made, options) = hostile(text);
        let page = html(&made, &options);
        assert_eq!(tags(&page), tags(&plain), "{text}");
        assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
        assert!(!page.contains("<script") && !page.contains("<img"));
        assert!(
            page.chars()
                .all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'),
            "{text}"
        );
    }
}

#[test]
fn texts_of_others_are_no_formulas_in_tables() {
    for (text, wanted) in [
        ("=cmd|'/C calc'!A0", "\"'=cmd|'/C calc'!A0\""),
        ("+1", "\"'+1\""),
        ("-1", "\"'-1\""),
        ("@SUM(A1)", "\"'@SUM(A1)\""),
        ("\t=1", "\"'\\u{9}=1\""),
        ("\r=1", "\"'\\u{d}=1\""),
        (" =1", "\"' =1\""),
        ("\u{ff1d}1", "\"'\u{ff1d}1\""),
        ("a\",=1", "\"a\"\",=1\""),
        ("<script>", "\"<script>\""),
        ("plain", "\"plain\""),
    ] {
        assert_eq!(cell(text), wanted);
    }
    let (made, options) = hostile("=1");
    let table = csv(&made, &options);
    assert_eq!(table.lines().count(), 1 + CODES.len());
    for line in table.lines().skip(1) {
        assert!(line.starts_with('"') && !line.starts_with("\"="), "{line}");
    }
    assert!(table.contains("\"'=1\",\"'=1\",30,70.000,"), "{table}");
    assert!(table.chars().all(|c| "\r\n".contains(c) || !c.is_control()));
}

#[test]
fn texts_of_others_command_no_terminal_and_break_no_json() {
    for words in HOSTILE {
        let (made, options) = hostile(words);
        for found in [text(&made, &options), json(&made, &options)] {
            assert!(
                found
                    .chars()
                    .all(|c| c == '\n' || !c.is_control() && c != '\u{202e}')
            );
        }
        let report: Value = serde_json::from_str(&json(&made, &options)).expect("it is JSON");
        assert_eq!(report["source"], words);
        assert_eq!(report["warnings"][2], words);
    }
}

#[test]
fn document_has_all_members_columns_and_colours() {
    let document = include_str!("../../../../docs/map.md");
    let mut made = map(&[(b"DE", 30, 70)]);
    made.unknown.requests = 1;
    let options = Options::default();
    let report: Value = serde_json::from_str(&json(&made, &options)).expect("it is JSON");
    let members = |value: &Value| -> Vec<String> {
        let members = value.as_object().expect("an object").keys();
        members.cloned().collect()
    };
    let mut names = [members(&report), members(&report["countries"][0])].concat();
    let table = csv(&made, &options);
    names.extend(
        table
            .lines()
            .next()
            .expect("heads")
            .split(',')
            .map(str::to_owned),
    );
    assert_eq!(names.len(), 11 + 10 + 10);
    let fills = scale::Fill::all().map(|fill| fill.paint().to_owned());
    names.extend(fills.take(6));
    for name in names {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}
