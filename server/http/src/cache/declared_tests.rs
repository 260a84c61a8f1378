//! Caches of a configuration: names and paths that are used twice, and the state that reloads keep.

use conf::Word;

use super::*;

/// Returns `*_cache_path` with these words, and its parameters.
fn written(words: &str) -> (Directive, CachePath) {
    let mut d = Directive::synthetic("proxy_cache_path");
    let pos = d.pos;
    let all = words.split(' ');
    d.args = all.map(|word| Word::new(word, pos, false, 0)).collect();
    let parsed = CachePath::parse(&d, <[u8]>::to_vec);
    let parsed = parsed.unwrap_or_else(|error| panic!("{words}: {error}"));
    (d, parsed)
}

fn add(caches: &mut DeclaredCaches, module: &'static str, words: &str) -> Result<(), String> {
    let (d, written) = written(words);
    let added = caches.add(&d, module, written, |_| Ok(0));
    added.map_err(|error| error.message().to_owned())
}

/// Loads a configuration with one cache.
fn load(words: &str) -> (DeclaredCaches, Arc<CacheZone>) {
    let mut caches = DeclaredCaches::default();
    add(&mut caches, "proxy_", words).expect("it is alone");
    let zone = caches.0[0].zone.clone();
    (caches, zone)
}

#[test]
fn a_path_or_a_name_that_is_used_twice_is_an_error() {
    let mut caches = DeclaredCaches::default();
    assert_eq!(add(&mut caches, "proxy_", "/c keys_zone=one:1m"), Ok(()));
    let error = add(&mut caches, "fastcgi_", "/c/ keys_zone=two:1m");
    let error = error.expect_err("the path is used");
    let starts = error.starts_with("the same path name \"/c\" used in ");
    assert!(starts && error.ends_with(" and"), "{error}");
    let error = add(&mut caches, "proxy_", "/d keys_zone=one:1m");
    assert_eq!(error, Err("duplicate zone \"one\"".to_owned()));
    // Names of different modules are compared by the list of all zones.
    assert_eq!(add(&mut caches, "scgi_", "/e keys_zone=one:1m"), Ok(()));
}

#[test]
fn the_error_of_the_zone_is_that_of_the_directive() {
    let (d, written) = written("/c keys_zone=one:1m");
    let mut caches = DeclaredCaches::default();
    let added = caches.add(&d, "proxy_", written, |cache| {
        assert_eq!((&cache.name[..], cache.zone_bytes), (&b"one"[..], 1 << 20));
        Err("no".to_owned())
    });
    assert_eq!(
        added.map_err(|error| error.message().to_owned()),
        Err("no".to_owned())
    );
    assert!(caches.of_module("proxy_").find(b"one").is_none());
}

#[test]
fn each_module_has_its_own_caches() {
    let mut caches = DeclaredCaches::default();
    for (module, words) in [
        ("proxy_", "/a keys_zone=a:1m"),
        ("scgi_", "/b keys_zone=b:1m"),
    ] {
        add(&mut caches, module, words).expect("they differ");
    }
    let own = caches.of_module("proxy_");
    assert!(own.find(b"a").is_some() && own.find(b"b").is_none() && own.find(b"").is_none());
    assert_eq!(caches.tasks().count(), 2);
}

#[test]
fn directories_are_made_and_are_not_those_of_temporary_files() {
    let (caches, _) = load("/a keys_zone=a:1m");
    let mut paths = BTreeSet::from([PathBuf::from("/t")]);
    assert!(caches.add_directories(&mut paths).is_ok());
    assert!(paths.contains(&PathBuf::from("/a")));
    let error = caches
        .add_directories(&mut paths)
        .expect_err("it is one of them");
    assert_eq!(
        error.message(),
        "the same path name \"/a\" is used for temporary files"
    );
}

#[test]
fn temporary_files_are_in_the_directory_if_use_temp_path_is_off() {
    let (_, zone) = load("/declared/t keys_zone=a:1m");
    assert!(zone.uses_temp_path);
    let (_, zone) = load("/declared/u keys_zone=a:1m use_temp_path=off");
    assert!(!zone.uses_temp_path);
}

#[test]
fn a_reload_keeps_the_state_of_a_cache() {
    let (before, zone) = load("/declared/k keys_zone=k:1m levels=1:2");
    let (after, reloaded) = load("/declared/k keys_zone=k:2m levels=1:2 inactive=1s");
    assert!(Arc::ptr_eq(&zone.shared, &reloaded.shared));
    // The state outlives the earlier configuration.
    let shared = Arc::downgrade(&zone.shared);
    drop((before, zone));
    assert!(shared.upgrade().is_some());
    drop((after, reloaded));
    assert!(shared.upgrade().is_none());
}

#[test]
fn another_path_or_other_levels_are_another_cache() {
    let (_first, zone) = load("/declared/l keys_zone=l:1m levels=1:2");
    for words in [
        "/declared/m keys_zone=l:1m levels=1:2",
        "/declared/l keys_zone=l:1m levels=2:1",
        "/declared/l keys_zone=n:1m levels=1:2",
    ] {
        let (_, other) = load(words);
        assert!(!Arc::ptr_eq(&zone.shared, &other.shared), "{words}");
    }
}

#[test]
fn a_load_that_fails_changes_nothing() {
    let (_served, zone) = load("/declared/f keys_zone=f:1m");
    let entries = zone.shared.index.stats().entries_max;
    assert_eq!(entries, 8000);
    let mut failed = DeclaredCaches::default();
    add(&mut failed, "proxy_", "/declared/f keys_zone=f:2m").expect("it is alone");
    // Tasks are made, and never run.
    assert_eq!(failed.tasks().count(), 1);
    assert!(add(&mut failed, "proxy_", "/declared/f keys_zone=g:2m").is_err());
    drop(failed);
    assert_eq!(zone.shared.index.stats().entries_max, entries);
    assert!(zone.shared.directory().is_none());
    let (_, again) = load("/declared/f keys_zone=f:1m");
    assert!(Arc::ptr_eq(&zone.shared, &again.shared));
}
