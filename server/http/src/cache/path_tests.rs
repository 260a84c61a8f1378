//! Parameters of `*_cache_path`: limits, defaults, and errors as `nginx -t` of nginx 1.31.4 has them.

use super::*;

/// Returns a directive with these words.
fn directive(words: &str) -> Directive {
    let mut d = Directive::synthetic("proxy_cache_path");
    let pos = d.pos;
    let words = words.split(' ');
    d.args = words.map(|word| Word::new(word, pos, false, 0)).collect();
    d
}

fn parse(words: &str) -> Result<CachePath, String> {
    let full = |path: &[u8]| [b"/prefix/", path].concat();
    let parsed = CachePath::parse(&directive(words), full);
    parsed.map_err(|error| error.message().to_owned())
}

fn parsed(words: &str) -> CachePath {
    parse(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

#[test]
fn defaults_are_those_of_nginx() {
    let cache = parsed("cache/ keys_zone=one:10m");
    let (path, name) = (&cache.path[..], &cache.name[..]);
    assert_eq!((path, name), (&b"/prefix/cache"[..], &b"one"[..]));
    assert_eq!((cache.zone_bytes, cache.uses_temp_path), (10 << 20, true));
    assert_eq!(cache.levels.depth(), 0);
    let limits = CacheLimits {
        inactive_s: 600,
        max_bytes: None,
        min_free_bytes: 0,
        memory_bytes: 0,
    };
    assert_eq!(cache.limits, limits);
    let paces = [cache.loader, cache.manager, cache.purger];
    let shown = paces.map(|pace| (pace.files, pace.sleep_ms, pace.threshold_ms));
    assert_eq!(shown, [(100, 50, 200), (100, 50, 200), (10, 50, 50)]);
}

#[test]
fn each_parameter_is_read() {
    let cache = parsed(
        "c levels=1:2 use_temp_path=off keys_zone=a:8k inactive=1h max_size=2g min_free=3m loader_files=1 loader_sleep=2ms \
         loader_threshold=3s manager_files=4 manager_sleep=5ms manager_threshold=6ms purger=on purger_files=7 \
         purger_sleep=8ms purger_threshold=9ms",
    );
    assert_eq!(cache.levels, Levels::parse(b"1:2").expect("levels"));
    assert!(!cache.uses_temp_path);
    let limits = CacheLimits {
        inactive_s: 3600,
        max_bytes: Some(2 << 30),
        min_free_bytes: 3 << 20,
        memory_bytes: 0,
    };
    assert_eq!(cache.limits, limits);
    let paces = [cache.loader, cache.manager, cache.purger];
    let shown = paces.map(|pace| (pace.files, pace.sleep_ms, pace.threshold_ms));
    assert_eq!(shown, [(1, 2, 3000), (4, 5, 6), (7, 8, 9)]);
}

#[test]
fn keys_zone_has_at_least_two_pages() {
    for (bytes, is_accepted) in [(8191, false), (8192, true), (8193, true)] {
        let cache = parse(&format!("c keys_zone=a:{bytes}"));
        match cache {
            Ok(cache) => assert_eq!((cache.zone_bytes, is_accepted), (bytes, true)),
            Err(error) => {
                let expected = format!("keys zone \"keys_zone=a:{bytes}\" is too small");
                assert_eq!((error, is_accepted), (expected, false));
            }
        }
    }
}

#[test]
fn numbers_above_32_bits_are_the_largest() {
    let seconds = |words: &str| {
        parsed(&format!("c keys_zone=a:1m {words}"))
            .limits
            .inactive_s
    };
    assert_eq!(seconds("inactive=4294967294"), u32::MAX - 1);
    assert_eq!(seconds("inactive=4294967295"), u32::MAX);
    assert_eq!(seconds("inactive=4294967296"), u32::MAX);
    let files = |words: &str| parsed(&format!("c keys_zone=a:1m {words}")).loader.files;
    assert_eq!(files("loader_files=0"), 0);
    assert_eq!(files("loader_files=4294967295"), u32::MAX);
    assert_eq!(files("loader_files=4294967296"), u32::MAX);
}

#[test]
fn levels_may_be_empty_as_in_nginx() {
    assert_eq!(parsed("c levels= keys_zone=a:1m").levels.depth(), 0);
    for (levels, depth) in [("1", 1), ("2:2", 2), ("1:2:1", 3)] {
        let cache = parsed(&format!("c levels={levels} keys_zone=a:1m"));
        assert_eq!(cache.levels.depth(), depth);
    }
}

#[test]
fn wrong_parameters_have_the_errors_of_nginx() {
    let mut wrong = Vec::new();
    for (words, expected) in WRONG {
        match parse(&format!("c {words}")) {
            Err(error) if error == *expected => {}
            other => wrong.push(format!("{words}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words behind the path, and the error.
const WRONG: &[(&str, &str)] = &[
    (
        "levels=1",
        "\"proxy_cache_path\" must have \"keys_zone\" parameter",
    ),
    (
        "keys_zone=:1m",
        "\"proxy_cache_path\" must have \"keys_zone\" parameter",
    ),
    ("keys_zone=a", "invalid keys zone size \"keys_zone=a\""),
    ("keys_zone=a:", "invalid keys zone size \"keys_zone=a:\""),
    (
        "keys_zone=a:1g",
        "invalid keys zone size \"keys_zone=a:1g\"",
    ),
    ("keys_zone=a:1m levels=0", "invalid \"levels\" \"levels=0\""),
    ("keys_zone=a:1m levels=3", "invalid \"levels\" \"levels=3\""),
    (
        "keys_zone=a:1m levels=1:",
        "invalid \"levels\" \"levels=1:\"",
    ),
    (
        "keys_zone=a:1m levels=1:2:1:1",
        "invalid \"levels\" \"levels=1:2:1:1\"",
    ),
    (
        "keys_zone=a:1m use_temp_path=ON",
        "invalid use_temp_path value \"use_temp_path=ON\", it must be \"on\" or \"off\"",
    ),
    (
        "keys_zone=a:1m purger=yes",
        "invalid purger value \"purger=yes\", it must be \"on\" or \"off\"",
    ),
    (
        "keys_zone=a:1m inactive=10ms",
        "invalid inactive value \"inactive=10ms\"",
    ),
    (
        "keys_zone=a:1m max_size=1t",
        "invalid max_size value \"max_size=1t\"",
    ),
    (
        "keys_zone=a:1m min_free=",
        "invalid min_free value \"min_free=\"",
    ),
    (
        "keys_zone=a:1m loader_files=-1",
        "invalid loader_files value \"loader_files=-1\"",
    ),
    (
        "keys_zone=a:1m loader_sleep=x",
        "invalid loader_sleep value \"loader_sleep=x\"",
    ),
    (
        "keys_zone=a:1m manager_threshold=x",
        "invalid manager_threshold value \"manager_threshold=x\"",
    ),
    (
        "keys_zone=a:1m purger_files=x",
        "invalid purger_files value \"purger_files=x\"",
    ),
    (
        "keys_zone=a:1m memory=x",
        "invalid memory value \"memory=x\"",
    ),
    (
        "keys_zone=a:1m loader_size=1",
        "invalid parameter \"loader_size=1\"",
    ),
    ("keys_zone=a:1m loader=1", "invalid parameter \"loader=1\""),
    ("keys_zone=a:1m xyz", "invalid parameter \"xyz\""),
    ("keys_zone=a:1m =", "invalid parameter \"=\""),
];
