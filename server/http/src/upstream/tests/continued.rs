//! Requests that continue after a response (`post_action`), passed on to servers: what they have of the ended request.

use engines::http::Method;

use super::Site;
use crate::builtin;
use crate::detached::{Discarded, discard, end};
use crate::exchange::{DetachedEnd, DetachedRequest, Exchange};
use crate::testing::START_MS;
use crate::testing::servers::Passing;

const POST: &str = "POST /up/a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";

/// A site, and a request with a body and a response of 10 bytes that ended after 5 ms.
fn answered(more: &str) -> (Site, Exchange) {
    let mut site = Site::with(Passing::new(), more);
    let mut x = site.run(POST);
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    site.call().head(404, &["X-A: first"]).data("body").end();
    site.pull(&mut x);
    site.world.pass(5);
    x.response.header_bytes = 6;
    x.response.bytes_sent = 10;
    x.response.completed = true;
    (site, x)
}

fn continued(site: &mut Site, x: &mut Exchange, to: &str) -> DetachedRequest {
    let uri = to.starts_with('/').then_some(to.as_bytes());
    let request = DetachedRequest::continued(x, &site.world.cx(), uri);
    let mut request = request.expect("not too deep");
    if uri.is_none() {
        crate::phases::redirect_named(&mut request.exchange, &mut site.world.cx(), to.as_bytes());
    }
    request
}

/// The value of a variable of the core.
fn core(site: &mut Site, x: &mut Exchange, name: &str) -> String {
    let mut out = Vec::new();
    let prefix = "sent_http_";
    let (row, rest) = match name.strip_prefix(prefix) {
        Some(rest) => (prefix, rest),
        None => (name, ""),
    };
    let mut all = builtin::VARIABLES.iter().copied().flatten();
    let found = all
        .find(|variable| variable.name == row)
        .expect("a variable");
    (found.read)(x, &mut site.world.cx(), rest.as_bytes(), &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn it_has_method_body_times_and_response_of_the_ended_request() {
    let (mut site, mut x) = answered("");
    let mut request = continued(&mut site, &mut x, "/up/after");
    drop(x);
    let own = &mut request.exchange;
    assert_eq!(
        (own.target.method, own.started_ms),
        (Method::Post, START_MS)
    );
    assert_eq!(
        (&*own.target.uri, &*own.target.args),
        (&b"/up/after"[..], &b""[..])
    );
    for (name, value) in [
        ("status", "404"),
        ("bytes_sent", "10"),
        ("body_bytes_sent", "4"),
        ("request_completion", "OK"),
        ("sent_http_x_a", "first"),
        ("request_body", "abc"),
        ("request_time", "0.005"),
    ] {
        assert_eq!(core(&mut site, own, name), value, "{name}");
    }
    assert_eq!(site.value(own, "upstream_status"), "404");
    let done = discard(own, &mut site.world.cx());
    assert_eq!(done, Discarded::Pending);
    assert_eq!(site.call().body(), ("abc".to_owned(), true));
    site.call().head(200, &[]).end();
    let done = discard(own, &mut site.world.cx());
    assert_eq!(done, Discarded::Ended(DetachedEnd::Complete));
    assert_eq!(site.value(own, "upstream_status"), "404 : 200");
    end(&mut request, &mut site.world.cx(), DetachedEnd::Complete);
}

#[test]
fn in_a_named_location_it_has_the_old_uri() {
    let (mut site, mut x) = answered("location @after { pass; }");
    let mut request = continued(&mut site, &mut x, "@after");
    let own = &mut request.exchange;
    let done = discard(own, &mut site.world.cx());
    assert_eq!((site.calls(), done), (2, Discarded::Pending));
    assert_eq!(
        (&*own.target.uri, &*own.target.args),
        (&b"/up/a"[..], &b"b=c"[..])
    );
    let (mut site, mut x) = answered("");
    let mut request = continued(&mut site, &mut x, "@nowhere");
    let done = discard(&mut request.exchange, &mut site.world.cx());
    assert_eq!(
        (site.calls(), done),
        (1, Discarded::Ended(DetachedEnd::Complete))
    );
    assert_eq!(request.exchange.status(), 500);
    let said = site.world.said();
    assert!(
        said.contains("could not find named location \"@nowhere\""),
        "{said}"
    );
}

/// The client has left while its server was silent.
#[test]
fn an_attempt_that_is_not_over_is_given_up() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.world.pass(5);
    let mut request = continued(&mut site, &mut x, "/up/b");
    assert!(site.call().is_given_up());
    let own = &mut request.exchange;
    assert_eq!(site.value(own, "upstream_response_time"), "0.005");
    assert_eq!(core(&mut site, own, "request_completion"), "");
}

/// A body that is not complete is not sent: a server would take a part for the whole.
#[test]
fn a_part_of_a_body_is_left_behind() {
    let mut site = Site::new(Passing::new());
    let mut x = site.run(POST);
    x.deliver_body(b"ab".to_vec(), &mut site.world.cx());
    let mut request = continued(&mut site, &mut x, "/up/b");
    discard(&mut request.exchange, &mut site.world.cx());
    assert_eq!(site.call().body(), (String::new(), false));
}
