//! Pages with SSI commands, and the expressions of `if`: every page has a response, and every expression is true, false
//! or refused.
//!
//! The first byte chooses whether the rest is a page or an expression. The whole core serves the page from a site in
//! memory; it includes a page of its own without commands.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the tests alone call the rest")]
#[path = "../../server/modules/tests/behaviour/context.rs"]
mod context;
#[path = "../../server/modules/tests/behaviour/disk.rs"]
mod disk;
#[allow(dead_code, reason = "the tests alone call the rest")]
#[path = "../../server/modules/tests/behaviour/servers.rs"]
mod servers;
#[allow(dead_code, reason = "the tests alone call the rest")]
#[path = "../../server/modules/tests/behaviour/site.rs"]
mod site;

use site::Site;

fuzz_target!(|input: &[u8]| {
    let Some((&kind, rest)) = input.split_first() else {
        return;
    };
    if kind & 1 == 0 {
        serve(rest);
        return;
    }
    let page = [IF, rest, THEN].concat();
    let body = serve(&page);
    if !rest
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\\' | b'-' | b'\''))
    {
        // A refused expression opens no block that the rest could end.
        let decided = *body == *b"yes" || *body == *b"no";
        assert!(decided || body.starts_with(b"bad"), "{body:?}");
    }
});

thread_local! {
    static SITE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

/// Returns the body of a page.
fn serve(page: &[u8]) -> Vec<u8> {
    let site = SITE.take().unwrap_or_else(|| {
        Site::server(
            "set $word abc; set $empty \"\";
             location = /page { ssi on; ssi_types *; ssi_value_length 256; }
             location / { return 200 included; }",
        )
    });
    let mut site = site.file_in_memory("/www/page", page);
    let answer = site.get("/page?a=1&b=abc&c=");
    assert_eq!(answer.status, 200);
    SITE.set(Some(site));
    answer.bytes
}

const IF: &[u8] = b"<!--#config errmsg=\"bad\" --><!--#if expr=\"";
const THEN: &[u8] = b"\" -->yes<!--#else -->no<!--#endif -->";
