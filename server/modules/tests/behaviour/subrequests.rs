//! Subrequests, text added around bodies (`add_before_body`), and subrequests that decide on access (`auth_request`).

use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::Chunk;
use server_http::exchange::{BodyRead, BodySource, Ctx, Pulled, Wait};

use crate::site::Site;

/// Locations that respond with a word, and two that delay requests by half a second.
const WORDS: &str = "
    types { text/html html; }
    location = /before { return 200 before-; }
    location = /after { return 200 -after; }
    location = /empty { return 200; }
    location = /missing { return 404; }
    location = /gone { return 444; }
    location = /slow { limit_req zone=slow.N burst=9; alias /www/slow; }
    location = /slower { limit_req zone=slower.N burst=9; alias /www/slower; }
";
const ZONES: &str = "
    limit_req_zone $server_name zone=slow.N:1m rate=2r/s;
    limit_req_zone $server_name zone=slower.N:1m rate=1r/s;
";

fn site(inner: &str) -> Site {
    // Zones are the process's: each site has its own.
    static SITES: AtomicU32 = AtomicU32::new(0);
    let number = SITES.fetch_add(1, Ordering::Relaxed).to_string();
    let server =
        format!("{ZONES} server {{ server_name localhost; root /www;\n{WORDS}\n{inner}\n}}");
    let server = server.replace(".N", &number);
    let mut site = Site::http(&server)
        .file("/www/page.html", "page")
        .file("/www/page.txt", "text")
        .file("/www/slow", "slow")
        .file("/www/slower", "slower");
    // The first request of each zone passes at once.
    for (name, path) in [("slow", "/slow"), ("slower", "/slower")] {
        assert_eq!(site.get(path).body, name);
    }
    site
}

/// Returns the body of a `GET` up to its first wait, and the time of its end.
fn until_wait(site: &mut Site, target: &str) -> (String, Option<u64>) {
    let mut x = site.begin(target);
    let mut ready = Vec::new();
    loop {
        match site.pull(&mut x) {
            Pulled::Chunk(chunk) => ready.extend_from_slice(chunk.bytes()),
            other => {
                let until_ms = x
                    .progress
                    .pull_wait
                    .filter(|_| matches!(other, Pulled::Pending));
                let until_ms = until_ms.map(|wait| wait.until_ms);
                return (String::from_utf8_lossy(&ready).into_owned(), until_ms);
            }
        }
    }
}

#[test]
fn bodies_of_subrequests_come_around_that_of_the_response() {
    let mut site = site(
        "location / { add_before_body /before; add_after_body /after; }
         location /only/ { alias /www/; add_after_body /after; }
         location /inner/ { alias /www/; add_before_body ''; }",
    );
    let page = site.get("/page.html");
    assert_eq!(
        (page.status, page.body.as_str()),
        (200, "before-page-after")
    );
    assert_eq!(site.get("/only/page.html").body, "page-after");
    assert_eq!(site.get("/inner/page.html").body, "page");
    assert_eq!(site.get("/page.txt").body, "text", "of another type");
    let head = site.send("HEAD /page.html HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn what_is_added_leaves_no_length_and_no_ranges() {
    let mut site = site("location / { add_after_body /after; }");
    let page = site.get_with("/page.html", "Range: bytes=0-1\r\n");
    assert_eq!((page.status, page.body.as_str()), (200, "page-after"));
    assert_eq!(page.field("Content-Length"), "");
    assert_eq!(page.field("Accept-Ranges"), "");
    assert!(page.field("ETag").starts_with("W/\""), "{}", page.head);
    assert!(page.field("Last-Modified").ends_with("GMT"));
    let since = page.field("Last-Modified").to_owned();
    let again = site.get_with("/page.html", &format!("If-Modified-Since: {since}\r\n"));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

#[test]
fn the_types_that_something_is_added_to_can_be_named() {
    let mut all =
        site("location / { default_type ''; types {} addition_types *; add_after_body /after; }");
    assert_eq!(all.get("/page.txt").body, "text-after");
    let mut plain = site(
        "types { text/plain txt; } addition_types text/plain; location / { add_after_body /after; }",
    );
    assert_eq!(plain.get("/page.txt").body, "text-after");
}

#[test]
fn an_error_is_added_like_any_body() {
    let mut site = site(
        "location / { add_after_body /missing; } location /e/ { alias /www/; add_before_body /empty; }",
    );
    let page = site.get("/page.html");
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("page<html>"), "{}", page.body);
    assert!(page.body.contains("404 Not Found"));
    assert_eq!(site.get("/e/page.html").body, "page");
}

#[test]
fn responses_that_are_not_200_are_left_alone() {
    let mut site = site(
        "location / { add_after_body /after; } location = /202.html { add_after_body /after; return 202 page; }",
    );
    assert_eq!(site.get("/202.html").body, "page");
    assert!(!site.get("/none.html").body.contains("-after"));
}

#[test]
fn internal_locations_serve_subrequests() {
    let mut site = site(
        "location / { add_after_body /inside; }
         location = /inside { internal; return 200 inside; }",
    );
    assert_eq!(site.get("/page.html").body, "pageinside");
    assert_eq!(site.get("/inside").status, 404);
}

#[test]
fn a_subrequest_shares_variables_and_goes_through_rewrites() {
    let mut site = site(
        "set $word none;
         location / { add_before_body /set; add_after_body /show; }
         location = /set { set $word set; return 200 $request_uri-; }
         location = /show { rewrite ^ /shown last; }
         location = /shown { return 200 -$word-$uri-$request_method-$arg_a; }",
    );
    assert_eq!(
        site.get("/page.html?a=1").body,
        "/page.html?a=1-page-none-/shown-GET-"
    );
}

#[test]
fn head_fields_are_added_once() {
    let mut site = site(
        "add_header X-One 1; add_trailer X-Two 2;
         location / { add_before_body /before; }",
    );
    let page = site.get("/page.html");
    assert_eq!(page.head.matches("X-One").count(), 1);
    assert_eq!(page.trailers.matches("X-Two").count(), 1);
}

#[test]
fn bodies_are_compressed_as_one() {
    let mut site = site(
        "gzip on; gzip_min_length 0; gzip_types text/plain;
         location / { add_before_body /before; add_after_body /after; }",
    );
    let page = site.get_with("/page.html", "Accept-Encoding: gzip\r\n");
    assert_eq!(page.field("Content-Encoding"), "gzip");
    let mut text = String::new();
    let mut reader = flate2::read::MultiGzDecoder::new(page.bytes.as_slice());
    std::io::Read::read_to_string(&mut reader, &mut text).expect("the body is gzip");
    assert_eq!(text, "before-page-after");
}

#[test]
fn strings_are_replaced_in_each_body_by_its_own_location() {
    let mut site = site(
        "location / { sub_filter a 4; sub_filter_once off; add_before_body /own; add_after_body /after; }
         location = /own { default_type text/html; sub_filter o 0; return 200 'an own'; }",
    );
    assert_eq!(site.get("/page.html").body, "an 0wnp4ge-after");
}

#[test]
fn charsets_are_changed_to_that_of_the_response() {
    let mut site = Site::http(
        "charset_map one two { 61 78; }
         server { server_name localhost; root /www; types { text/html html; }
           location / { charset two; source_charset two; add_after_body /one.html; }
           location = /one.html { source_charset one; } }",
    )
    .file("/www/page.html", "a")
    .file("/www/one.html", "a");
    assert_eq!(site.get("/page.html").body, "ax");
}

#[test]
fn what_is_ready_leaves_before_a_subrequest_that_waits() {
    let mut site = site(
        "location / { add_after_body /slow; } location /b/ { alias /www/; add_before_body /slow; }",
    );
    let (ready, until_ms) = until_wait(&mut site, "/page.html");
    assert_eq!(ready, "page");
    assert_eq!(until_ms, Some(1500));
    let first = site.get("/b/page.html");
    assert_eq!(first.body, "slowpage");
    assert!(first.waited_ms > 0);
}

/// A body that is generated while it is pulled.
struct Generated(Vec<BodyRead>);

impl BodySource for Generated {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        self.0.pop().unwrap_or(BodyRead::End)
    }
}

#[test]
fn a_body_that_is_made_later_is_joined() {
    let mut site = site("location / { add_before_body /before; add_after_body /after; }");
    let mut x = site.begin("/page.html");
    x.body.chunks.clear();
    let pieces = [
        BodyRead::Chunk(Chunk::Static(b"made")),
        BodyRead::Pending(Wait::until(1234)),
    ];
    x.body.source = Some(Box::new(Generated(Vec::from(pieces))));
    let mut got = Vec::new();
    let mut waits = Vec::new();
    loop {
        match site.pull(&mut x) {
            Pulled::Chunk(chunk) => got.extend_from_slice(chunk.bytes()),
            Pulled::Pending => {
                waits.push((got.clone(), x.progress.pull_wait.map(|wait| wait.until_ms)))
            }
            Pulled::BudgetSpent => panic!("nothing is spent"),
            Pulled::End => break,
            Pulled::Broken => panic!("the body breaks off"),
        }
    }
    assert_eq!(got, b"before-made-after");
    assert_eq!(waits, [(b"before-".to_vec(), Some(1234))]);
}

#[test]
fn compression_lets_go_of_what_is_ready() {
    let mut site = site("gzip on; gzip_min_length 0; location / { add_after_body /slow; }");
    let mut x = site
        .begin_with("GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        .0;
    let mut got = Vec::new();
    while let Pulled::Chunk(chunk) = site.pull(&mut x) {
        got.extend_from_slice(chunk.bytes());
    }
    let mut text = [0; 4];
    let mut reader = flate2::read::GzDecoder::new(got.as_slice());
    std::io::Read::read_exact(&mut reader, &mut text).expect("what was ready is there");
    assert_eq!(&text, b"page");
}

#[test]
fn subrequests_of_subrequests_end_at_a_depth() {
    let mut site = site(
        "location = /self.html { default_type text/html; add_after_body /self.html; return 200 self; }",
    );
    assert_eq!(
        site.get("/self.html").body,
        "selfself",
        "only around the client's"
    );
}

#[test]
fn a_subrequest_that_is_closed_breaks_the_response_off() {
    let mut site = site("location / { add_after_body /gone; }");
    let mut x = site.begin("/page.html");
    assert!(matches!(site.pull(&mut x), Pulled::Chunk(_)));
    assert!(matches!(site.pull(&mut x), Pulled::Broken));
}

#[test]
fn the_status_of_a_subrequest_says_who_may_pass() {
    let mut site = site(
        "location / { auth_request /ask; }
         location = /ask { return 204; }
         location /no { auth_request /403; }
         location /who { auth_request /401; }
         location /odd { auth_request /404; }
         location /text/ { alias /www/; auth_request /before; }
         location /closed/ { alias /www/; auth_request /gone; }
         location /off/ { alias /www/; auth_request off; }
         location = /401 { return 401; }
         location = /403 { return 403; }
         location = /404 { return 404; }",
    );
    assert_eq!(site.get("/page.html").body, "page");
    assert_eq!(site.get("/text/page.html").body, "page");
    assert_eq!(site.get("/no").status, 403);
    assert_eq!(site.get("/who").status, 401);
    assert_eq!(site.get("/odd").status, 500);
    assert_eq!(site.get("/closed/page.html").status, 0);
    assert_eq!(site.get("/off/page.html").body, "page");
}

#[test]
fn other_handlers_and_the_subrequest_decide_together() {
    let mut site = site(
        "location = /401 { return 401; }
         location /allowed/ { satisfy any; auth_request /401; alias /www/; allow 192.0.2.1; deny all; }
         location /denied/ { satisfy any; auth_request /401; alias /www/; deny all; }",
    );
    assert_eq!(site.get("/allowed/page.html").body, "page");
    assert_eq!(site.get("/denied/page.html").status, 401);
}

#[test]
fn a_request_waits_for_the_subrequest_that_decides() {
    let mut site = site("location / { auth_request /slow; }");
    let page = site.get("/page.html");
    assert_eq!((page.body.as_str(), page.waited_ms), ("page", 500));
}

#[test]
fn variables_can_be_taken_from_the_subrequest() {
    let mut site = site(
        "location / { auth_request /ask; auth_request_set $who $uri$arg_a; auth_request_set $args b=2;
                      add_header X-Who $who; add_header X-B $arg_b; }
         location = /ask { return 204; }
         location = /unset { add_header X-Who [$who]; return 204; }",
    );
    let page = site.get("/page.html?a=1");
    assert_eq!((page.field("X-Who"), page.field("X-B")), ("/ask", "2"));
    assert_eq!(site.get("/unset").field("X-Who"), "[]");
}

#[test]
fn an_internal_redirect_asks_again() {
    let mut site = site(
        "set $n '';
         location / { auth_request /ask; error_page 404 /page.html; }
         location = /ask { set $n ${n}x; return 204; }
         add_header X-N $n always;",
    );
    let page = site.get("/none.html");
    assert_eq!((page.body.as_str(), page.field("X-N")), ("page", "x"));
}

#[test]
fn what_auth_request_cannot_mean_is_refused() {
    for (text, why) in [
        (
            "auth_request /a; auth_request /b;",
            "\"auth_request\" directive is duplicate",
        ),
        ("auth_request_set x y;", "invalid variable name \"x\""),
        ("auth_request_set $uri y;", "the duplicate \"uri\" variable"),
        (
            "add_before_body /a; add_before_body /b;",
            "\"add_before_body\" directive is duplicate",
        ),
    ] {
        let said = Site::refused(&format!("server {{ {text} }}"));
        assert!(said.starts_with(why), "{said}");
    }
}
