//! Internal redirections: changed state, kept state, and their end.

use engines::http::Chunk;

use super::{redirect, redirect_named};
use crate::exchange::{Ctx, Exchange, MAX_URI_CHANGES, State, UriOrigin};
use crate::testing::{Outcome, Reaction, World, get};

fn to_b(x: &mut Exchange, cx: &mut Ctx<'_>) -> Outcome {
    x.body.chunks.push_back(Chunk::Static(b"of before"));
    redirect(x, cx, b"/b.txt", b"q=1");
    Outcome::Restart
}

fn to_named(x: &mut Exchange, cx: &mut Ctx<'_>) -> Outcome {
    redirect_named(x, cx, b"@named");
    Outcome::Restart
}

fn limit(x: &Exchange) -> u64 {
    x.route.core_loc().bodies.client_max_body_size.0
}

#[test]
fn a_redirect_runs_again_from_the_rewriting_of_the_server() {
    let mut world = World::new("location /a { } location /b { client_max_body_size 7; }");
    let mut ran = world.run(&get("/a?old"), &[("pre_content", to_b)]);
    let handlers = ran.handlers();
    let again = handlers.split_once("pre_content ").map(|(_, after)| after);
    assert_eq!(
        again,
        Some("server_rewrite rewrite rewrite_2 pre_access access access_2 pre_content content say")
    );
    let x = &mut ran.x;
    assert_eq!(
        (
            x.target.uri.as_slice(),
            x.target.args.as_slice(),
            x.target.extension()
        ),
        (&b"/b.txt"[..], &b"q=1"[..], &b"txt"[..])
    );
    assert!(x.target.has_args && x.route.internal && x.target.origin == UriOrigin::Location);
    assert_eq!((limit(x), x.route.uri_changes), (7, MAX_URI_CHANGES));
    assert_eq!(
        world.pull(x).0,
        "/b.txt",
        "nothing is left of the body before"
    );
}

#[test]
fn a_redirect_without_arguments_has_none() {
    let mut world = World::new("");
    let ran = world.run(
        &get("/a?old"),
        &[("pre_content", |x, cx| {
            redirect(x, cx, b"/b", b"");
            Outcome::Restart
        })],
    );
    assert!(!ran.x.target.has_args && ran.x.target.args.is_empty());
}

#[test]
fn a_named_location_takes_the_request_as_it_is_from_its_own_rewriting_on() {
    let mut world = World::new("location @named { client_max_body_size 7; }");
    let mut ran = world.run(&get("/say/x?q"), &[("content", to_named)]);
    let handlers = ran.handlers();
    let again = handlers.split_once(" content ").map(|(_, after)| after);
    assert_eq!(
        again,
        Some("rewrite rewrite_2 pre_access access access_2 pre_content content say")
    );
    assert_eq!(
        (ran.x.target.uri.as_slice(), ran.x.target.args.as_slice()),
        (&b"/say/x"[..], &b"q"[..])
    );
    assert!(ran.x.route.internal);
    assert_eq!(
        (limit(&ran.x), ran.x.route.uri_changes),
        (7, MAX_URI_CHANGES)
    );
    assert_eq!(world.pull(&mut ran.x).0, "x");
}

#[test]
fn what_cannot_be_reached_is_500_and_the_log_says_why() {
    let mut world = World::new("location @named { }");
    let cases: [(Reaction, &str); 2] = [
        (
            |x, cx| {
                redirect_named(x, cx, b"@missing");
                Outcome::Restart
            },
            "could not find named location \"@missing\"",
        ),
        (
            |x, cx| {
                x.target.uri.clear();
                redirect_named(x, cx, b"@named");
                Outcome::Restart
            },
            "empty URI in redirect to named location \"@named\"",
        ),
    ];
    for (reaction, why) in cases {
        let ran = world.run(&get("/a"), &[("content", reaction)]);
        assert_eq!(
            (ran.x.progress.state, ran.x.response.head.status),
            (State::Responding, 500)
        );
        let said = world.said();
        assert!(said.contains(why), "{said}");
    }
}

/// As in nginx, ten lead somewhere and the next is a cycle, of whichever kind it is.
#[test]
fn redirections_end_at_a_limit() {
    let mut world = World::new("location @named { }");
    let most = usize::from(MAX_URI_CHANGES);
    let cases: [(Reaction, &str); 2] = [
        (to_b, "cycle while internally redirecting to \"/b.txt\""),
        (
            to_named,
            "cycle while redirect to named location \"@named\"",
        ),
    ];
    for (reaction, why) in cases {
        let ran = world.run(&get("/a"), &vec![("content", reaction); most]);
        assert_eq!(ran.x.response.head.status, 200);
        assert_eq!(world.said(), "");
        let ran = world.run(&get("/a"), &vec![("content", reaction); most + 1]);
        assert_eq!(ran.x.response.head.status, 500);
        let said = world.said();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn error_pages_are_redirections() {
    let mut world = World::new(
        "error_page 404 /say/page; error_page 403 = @named; error_page 503 =200 /say/fine; error_page 500 http://other/;
         location @named { }",
    );
    let mut answer = |status: Reaction| {
        let mut ran = world.run(
            "POST /say/a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            &[("content", status)],
        );
        let method = ran.x.target.method;
        (ran.x.response.head.status, world.pull(&mut ran.x).0, method)
    };
    use engines::http::Method::{Get, Post};
    assert_eq!(
        answer(|_, _| Outcome::Status(404)),
        (404, "page".to_owned(), Get)
    );
    assert_eq!(
        answer(|_, _| Outcome::Status(403)),
        (200, "a".to_owned(), Post)
    );
    assert_eq!(
        answer(|_, _| Outcome::Status(503)),
        (200, "fine".to_owned(), Get)
    );
    assert_eq!(answer(|_, _| Outcome::Status(500)).0, 302);
}

#[test]
fn an_error_page_that_fails_has_none_of_its_own_unless_it_may() {
    for (recursive, expected) in [("off", 403), ("on", 404)] {
        let mut world = World::new(&format!(
            "recursive_error_pages {recursive}; error_page 404 /first; error_page 403 /say/second;"
        ));
        let mut ran = world.run(
            &get("/a"),
            &[
                ("content", |_, _| Outcome::Status(404)),
                ("content", |_, _| Outcome::Status(403)),
            ],
        );
        assert_eq!(ran.x.response.head.status, 403, "{recursive}");
        let second = world.pull(&mut ran.x).0 == "second";
        assert_eq!(second, expected == 404, "{recursive}");
    }
}
