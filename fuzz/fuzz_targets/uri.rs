//! Targets and hosts: a normalized path never leaves the root, has no dot segment, and is the same after it is escaped
//! and normalized again.
#![no_main]

use engines::http::{Escape, escape, normalize, parse_host, unescape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for merge_slashes in [false, true] {
        check_path(input, merge_slashes);
    }
    check_escapes(input);
    check_host(input);
});

fn check_path(target: &[u8], merge_slashes: bool) {
    let mut uri = Vec::new();
    let Ok(parsed) = normalize(target, merge_slashes, &mut uri) else {
        return;
    };
    assert_eq!(uri.first(), Some(&b'/'));
    assert!(!uri.contains(&0));
    assert!(uri.len() <= target.len());
    for segment in uri.split(|byte| *byte == b'/') {
        assert!(segment != b"." && segment != b"..", "a dot segment is left");
    }
    assert!(!merge_slashes || !uri.windows(2).any(|pair| pair == b"//"));
    if let Some(ext) = parsed.ext {
        assert_eq!(uri[ext.start - 1], b'.');
        assert!(ext.end == uri.len() && !uri[ext].contains(&b'/'));
    }
    if let Some(args) = parsed.args {
        assert_eq!(target[args.start - 1], b'?');
        assert!(!target[args].contains(&b'#'));
    }
    let (mut escaped, mut again) = (Vec::new(), Vec::new());
    escape(&uri, Escape::Uri, &mut escaped);
    let second = normalize(&escaped, merge_slashes, &mut again);
    assert!(second.is_ok());
    assert_eq!(again, uri, "normalizing twice changes the path");
}

fn check_escapes(input: &[u8]) {
    for kind in [
        Escape::Uri,
        Escape::Args,
        Escape::UriComponent,
        Escape::Html,
        Escape::Memcached,
    ] {
        let (mut escaped, mut back) = (Vec::new(), Vec::new());
        escape(input, kind, &mut escaped);
        unescape(&escaped, &mut back);
        assert_eq!(back, input);
    }
}

fn check_host(input: &[u8]) {
    let mut name = Vec::new();
    if parse_host(input, &mut name).is_err() {
        return;
    }
    assert!(!name.is_empty() && name.len() <= input.len());
    assert!(
        !name
            .iter()
            .any(|byte| byte.is_ascii_uppercase() || *byte <= b' ' || b"/@\\#?".contains(byte))
    );
    let mut again = Vec::new();
    // No dot is left before the stripped one, since two dots in a row are refused.
    assert_eq!(parse_host(&name, &mut again), Ok(None));
    assert_eq!(again, name);
}
