//! The loop over the phases: order, decisions, waits, redirections.

use engines::http::Fault;

use super::{Phase, redirect, refuse_body, resume};
use crate::exchange::{Exchange, MAX_URI_CHANGES, State, Wait};
use crate::reply;
use crate::testing::{Outcome, Ran, Reaction, START_MS, World, body, get, status};

const ALL: &str =
    "post_read server_rewrite rewrite rewrite_2 pre_access access access_2 pre_content content say";
const AFTER_REWRITE: &str = "pre_access access access_2 pre_content content say";

/// Which of all handlers this is.
fn place(name: &str) -> usize {
    let place = ALL.split(' ').position(|handler| handler == name);
    place.expect("a handler")
}

#[test]
fn phases_run_in_order_and_their_handlers_too() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/say/hello"), &[]);
    assert_eq!(ran.handlers(), ALL);
    assert_eq!(status(&ran.x), 200);
    assert_eq!(body(&mut world, &mut ran.x), "hello");
    super::log(&mut ran.x, &mut world.cx());
    assert_eq!(ran.handlers(), "log", "when the response has left");
}

#[test]
fn a_status_ends_the_phases_wherever_it_is_said() {
    let mut world = World::new("");
    let before = |last: &str| {
        let words: Vec<&str> = ALL.split(' ').collect();
        words[..=place(last)].join(" ")
    };
    for name in [
        "post_read",
        "server_rewrite",
        "rewrite",
        "rewrite_2",
        "pre_access",
        "pre_content",
        "content",
        "say",
    ] {
        let ran = world.run(&get("/a"), &[(name, |_, _| Outcome::Status(403))]);
        assert_eq!(ran.handlers(), before(name));
        assert_eq!(
            (status(&ran.x), ran.x.route.err_status),
            (403, 403),
            "{name}"
        );
    }
}

#[test]
fn a_response_ends_the_phases_wherever_it_is_made() {
    let mut world = World::new("");
    for name in [
        "server_rewrite",
        "rewrite",
        "pre_access",
        "pre_content",
        "content",
    ] {
        let mut ran = world.run(
            &get("/a"),
            &[(name, |x, cx| {
                reply::text(x, cx, 201, b"made".to_vec(), None);
                Outcome::Sent
            })],
        );
        assert!(ran.handlers().ends_with(name));
        assert_eq!(status(&ran.x), 201);
        assert_eq!(body(&mut world, &mut ran.x), "made");
    }
}

/// Its phase is run again, not the handlers before it and not those of phases before.
#[test]
fn a_handler_that_waits_is_run_again() {
    fn later(x: &mut Exchange, _: &mut crate::exchange::Ctx<'_>) -> Outcome {
        x.progress.state = State::Waiting(Wait::woken_or_until(START_MS + 500));
        Outcome::Wait
    }
    let mut world = World::new("");
    let after = |first: &str| {
        let words: Vec<&str> = ALL.split(' ').collect();
        words[place(first)..].join(" ")
    };
    for name in [
        "post_read",
        "rewrite_2",
        "pre_access",
        "access_2",
        "pre_content",
        "content",
        "say",
    ] {
        let mut ran = world.run(&get("/a"), &[(name, later), (name, later)]);
        assert!(ran.handlers().ends_with(name));
        assert_eq!(
            ran.x.progress.state,
            State::Waiting(Wait::woken_or_until(START_MS + 500))
        );
        world.resume(&mut ran.x);
        assert_eq!(ran.handlers(), name, "once too often does no harm");
        world.resume(&mut ran.x);
        assert_eq!(ran.handlers(), after(name));
        assert_eq!(status(&ran.x), 200);
    }
}

#[test]
fn who_waits_for_a_time_alone_is_not_run_before_it() {
    let mut world = World::new("");
    let waits: Reaction = |x, _| {
        x.progress.state = State::Waiting(Wait::until(START_MS + 500));
        Outcome::Wait
    };
    let mut ran = world.run(&get("/a"), &[("pre_access", waits)]);
    ran.handlers();
    world.pass(499);
    world.resume(&mut ran.x);
    assert_eq!(ran.handlers(), "");
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 500))
    );
    world.pass(1);
    world.resume(&mut ran.x);
    assert!(ran.handlers().starts_with("pre_access "));
}

#[test]
fn only_what_waits_is_resumed() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[]);
    ran.handlers();
    resume(&mut ran.x, &mut world.cx());
    assert_eq!(
        (ran.handlers().as_str(), ran.x.progress.state),
        ("", State::Responding)
    );
}

#[test]
fn without_an_answer_a_directory_is_forbidden_and_anything_else_not_found() {
    let mut world = World::new("root /www;");
    let x = world.get("/dir/");
    assert_eq!(status(&x), 403);
    let said = world.said();
    assert!(
        said.contains("directory index of \"/www/dir/\" is forbidden"),
        "{said}"
    );
    let x = world.get("/none");
    assert_eq!(status(&x), 404);
    let said = world.said();
    assert!(
        said.contains("[error]") && said.contains("no handler found"),
        "{said}"
    );
}

#[test]
fn the_handler_of_a_location_is_asked_before_all_others() {
    let mut world = World::new("location /a { probe_handler; } location /b { }");
    let content = |ran: Ran| {
        let handlers = ran.handlers();
        let of_phase = handlers.split_once("pre_content ");
        of_phase.map(|(_, handlers)| handlers.to_owned())
    };
    let declined = world.run(&get("/a"), &[]);
    assert_eq!(status(&declined.x), 200);
    assert_eq!(content(declined).as_deref(), Some("handler content say"));
    let refused = world.run(&get("/a"), &[("handler", |_, _| Outcome::Status(405))]);
    assert_eq!(status(&refused.x), 405);
    assert_eq!(content(refused).as_deref(), Some("handler"));
    let elsewhere = world.run(&get("/b"), &[]);
    assert_eq!(content(elsewhere).as_deref(), Some("content say"));
    let waits: Reaction = |x, _| {
        x.progress.state = State::Waiting(Wait::until(START_MS));
        Outcome::Wait
    };
    let mut ran = world.run(&get("/a"), &[("say", waits)]);
    ran.handlers();
    world.resume(&mut ran.x);
    assert_eq!(ran.handlers(), "say", "not again for the sake of another");
}

#[test]
fn a_changed_uri_is_looked_for_again_from_the_server_on() {
    let mut world = World::new("location /a { } location /b { client_max_body_size 7; }");
    let mut ran = world.run(
        &get("/a"),
        &[("rewrite", |x, _| {
            x.target.set_uri(b"/b");
            x.route.uri_changed = true;
            Outcome::Next
        })],
    );
    assert_eq!(
        ran.handlers(),
        format!("post_read server_rewrite rewrite rewrite_2 rewrite rewrite_2 {AFTER_REWRITE}")
    );
    assert_eq!(body(&mut world, &mut ran.x), "/b");
    assert_eq!(ran.x.route.core_loc().bodies.client_max_body_size.0, 7);
    assert_eq!(ran.x.route.uri_changes, MAX_URI_CHANGES);
    assert!(!ran.x.route.uri_changed);
}

/// nginx allows ten.
#[test]
fn a_uri_that_keeps_changing_ends_with_500() {
    fn change(x: &mut Exchange, _: &mut crate::exchange::Ctx<'_>) -> Outcome {
        x.route.uri_changed = true;
        Outcome::Next
    }
    let mut world = World::new("");
    let times = |n: usize| vec![("rewrite", change as Reaction); n];
    let ran = world.run(&get("/a"), &times(MAX_URI_CHANGES.into()));
    assert_eq!(status(&ran.x), 200);
    let ran = world.run(&get("/a"), &times(usize::from(MAX_URI_CHANGES) + 1));
    assert_eq!(status(&ran.x), 500);
    assert_eq!(ran.handlers().matches("rewrite_2").count(), 11);
    let said = world.said();
    assert!(
        said.contains("rewrite or internal redirection cycle while processing \"/a\""),
        "{said}"
    );
}

#[test]
fn internal_locations_are_for_internal_requests() {
    let mut world = World::new("location /inside { internal; }");
    let ran = world.run(&get("/inside"), &[]);
    assert_eq!(
        (status(&ran.x), ran.handlers().as_str()),
        (404, "post_read server_rewrite")
    );
    let mut ran = world.run(
        &get("/a"),
        &[("content", |x, cx| {
            redirect(x, cx, b"/inside", b"");
            Outcome::Restart
        })],
    );
    assert_eq!(body(&mut world, &mut ran.x), "/inside");
}

#[test]
fn an_announced_body_is_refused_one_byte_above_the_limit() {
    let mut world =
        World::new("client_max_body_size 10; location /all { client_max_body_size 0; }");
    let post = |target: &str, n: u64| {
        format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n")
    };
    assert_eq!(status(&world.run(&post("/a", 10), &[]).x), 200);
    assert_eq!(
        status(&world.run(&post("/all", 11), &[]).x),
        200,
        "0 is no limit"
    );
    world.said();
    let ran = world.run(&post("/a", 11), &[]);
    assert_eq!(status(&ran.x), 413);
    assert!(ran.x.input.too_large && !ran.x.progress.keep_alive);
    let said = world.said();
    assert!(
        said.contains("client intended to send too large body: 11 bytes"),
        "{said}"
    );
}

#[test]
fn the_error_page_of_a_body_that_is_too_large_is_served() {
    let mut world = World::new("client_max_body_size 10; error_page 413 /say/large;");
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
    let mut ran = world.run(post, &[]);
    assert_eq!(status(&ran.x), 413);
    assert_eq!(body(&mut world, &mut ran.x), "large");
    assert_eq!(world.said().lines().count(), 1, "refused once");
}

#[test]
fn methods_that_limit_except_leaves_out_have_a_location_of_their_own() {
    let mut world = World::new("location / { limit_except GET { } }");
    let outer = world.get("/a").route.location;
    let inner = world.generation.locations[outer]
        .except
        .map(|(_, inner)| inner);
    let mut location = |method: &str| {
        let head = format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n");
        world.run(&head, &[]).x.route.location
    };
    assert_eq!(location("HEAD"), outer, "GET allows HEAD");
    assert_eq!(Some(location("DELETE")), inner);
    assert_ne!(location("DELETE"), outer);
}

#[test]
fn a_broken_body_is_answered_in_the_place_of_the_response() {
    let mut world = World::new("error_page 400 /say/broken;");
    let mut ran = world.run(
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        &[("content", |x, _| {
            x.progress.state = State::Waiting(Wait::until(START_MS + 1));
            Outcome::Wait
        })],
    );
    assert!(ran.x.progress.keep_alive);
    refuse_body(&mut ran.x, &mut world.cx(), Fault::BadChunk);
    assert_eq!((status(&ran.x), ran.x.progress.keep_alive), (400, false));
    assert_eq!(
        body(&mut world, &mut ran.x),
        "broken",
        "its page runs through the phases"
    );
    assert!(world.said().contains(Fault::BadChunk.message()));
}

#[test]
fn the_phases_of_a_request_begin_anew_with_the_next() {
    let mut world = World::new("");
    let ran = world.run(&get("/a"), &[]);
    assert_eq!(ran.x.progress.phase, Phase::Content);
    let mut x = ran.x;
    x.clear_reply();
    let generation = std::rc::Rc::clone(&world.generation);
    let client = x.client;
    x.begin(generation, 0, client, &world.clock);
    assert_eq!(
        (x.progress.phase, x.progress.handler, x.route.uri_changes),
        (Phase::PostRead, 0, MAX_URI_CHANGES + 1)
    );
    assert!(
        x.target.uri.is_empty()
            && x.target.host.is_empty()
            && !x.progress.header_sent
            && !x.route.internal
    );
}
