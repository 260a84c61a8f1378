//! Response heads in files of a cache, in each format: any bytes are refused or parsed, and a parsed head has the same
//! meaning after it is encoded.
#![no_main]

use engines::http::{ResponseHead, is_token};
use libfuzzer_sys::fuzz_target;
use server_cache::disk::framed_head::frame;
use server_cache::response_head::{HeadFormat, encode, parse};
use server_cache::rfc9111::FieldList;

/// Most bytes of an input: an encoded head fits in a record of FastCGI.
const LONGEST: usize = 16 << 10;

fuzz_target!(|input: &[u8]| {
    if input.len() > LONGEST {
        return;
    }
    for format in [HeadFormat::Http, HeadFormat::Cgi, HeadFormat::Fcgi] {
        check(input, format);
    }
    // Few inputs have the head of a record.
    check(&frame(input), HeadFormat::Fcgi);
});

fn check(bytes: &[u8], format: HeadFormat) {
    let Some(head) = parse(bytes, format) else {
        return;
    };
    assert!((200..1000).contains(&head.status));
    let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    assert!(!head.phrase().iter().any(bad));
    for (_, name, value) in FieldList::from(&head).iter() {
        assert!(
            is_token(name) && !value.iter().any(bad),
            "a line ends early"
        );
    }
    for to in [HeadFormat::Http, format] {
        let bytes = encode(&head, FieldList::from(&head), to);
        let again = parse(&bytes, to).expect("it was encoded");
        assert_eq!((again.status, again.body), (head.status, head.body));
        assert_eq!(fields(&again), fields(&head));
    }
}

/// Names and values, without the status of CGI.
fn fields(head: &ResponseHead) -> Vec<(&[u8], &[u8])> {
    let all = FieldList::from(head).iter();
    let fields = all.map(|(_, name, value)| (name, value));
    fields
        .filter(|(name, _)| !name.eq_ignore_ascii_case(b"Status"))
        .collect()
}
