//! The header of the PROXY protocol: the result is independent of later bytes, more input never changes a result, and
//! fields stay in bounds.
#![no_main]

use engines::proxy_protocol::{MAX_BYTES, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let whole = parse(input);
    for end in 0..input.len() {
        match parse(&input[..end]) {
            Ok(None) => {}
            Ok(Some(parsed)) => assert_eq!(whole, Ok(Some(parsed))),
            Err(_) => assert!(whole.is_err()),
        }
    }
    let Ok(Some(parsed)) = whole else {
        assert!(whole.is_err() || input.len() < MAX_BYTES);
        return;
    };
    assert!(parsed.used <= input.len().min(MAX_BYTES));
    if let Some(header) = parsed.header {
        for name in [
            "alpn",
            "ssl",
            "ssl_cn",
            "ssl_verify",
            "0xea",
            "ssl_0x21",
            "",
        ] {
            let _ = header.tlv(name.as_bytes());
        }
    }
});
