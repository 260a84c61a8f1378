//! Pages and pictures of maps in Chromium. They are accessible, have no script, request nothing from other hosts, and fit a
//! telephone.

use firstbyte_tests::TempDir;
use firstbyte_tests::judge::{browser, judge};
use lab::map::{Options, RttMap, html, svg};

/// A map with countries of all classes, including small ones and ones with few samples.
fn map() -> RttMap {
    let mut map = RttMap::default();
    let all = [
        (b"DE", 900, 8),
        (b"FR", 300, 30),
        (b"US", 2_000, 90),
        (b"BR", 120, 190),
        (b"SG", 60, 165),
        (b"AU", 45, 290),
        (b"NZ", 30, 410),
        (b"MT", 3, 40),
        (b"IN", 19, 130),
    ];
    for (code, samples, ms) in all {
        let figures = map.country_mut(Some(*code));
        figures.requests = samples * 3;
        (0..samples).for_each(|n| figures.rtt.add(ms * 1000 + n));
    }
    map.unknown.requests = 12;
    map
}

#[test]
fn pages_and_pictures_of_maps_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let plain = Options {
        source: "/var/log/firstbyte/access.log".to_owned(),
        period: Some((1_767_225_600, 1_769_903_999)),
        warnings: vec!["the log has smoothed times alone".to_owned()],
        ..Options::default()
    };
    let hostile = |text: &str| Options {
        title: text.to_owned(),
        source: text.repeat(20),
        warnings: vec![text.to_owned(); 2],
        ..Options::default()
    };
    let script = "</title></style></svg><script>document.body.remove()</script><img src=x onerror=alert(1)>]]>";
    let event =
        "\" onload=\"alert(1)\" ' onload='alert(1) \u{202e}\u{2066}\u{200b}\u{7f}\u{1b}[31m&lt;";
    let wide = "\u{4e2d}".repeat(300);
    let without_times = {
        let mut map = map();
        let all = map.countries.values_mut();
        all.for_each(|figures| figures.rtt = Default::default());
        map
    };
    let mut files = Vec::new();
    for (n, (map, options)) in [
        (map(), plain.clone()),
        (without_times, plain),
        (map(), hostile(script)),
        (map(), hostile(event)),
        (RttMap::default(), hostile(&wide)),
    ]
    .iter()
    .enumerate()
    {
        dir.write(&format!("{n}.html"), html(map, options));
        dir.write(&format!("{n}.svg"), svg(map, options));
        files.extend([format!("{n}.html"), format!("{n}.svg")]);
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    judge(&browser, &dir, &names);
}
