//! Who may pass: `satisfy`, the order of the handlers, and refusals that are held back.

use engines::http::FieldId;

use crate::exchange::{Exchange, State, Wait};
use crate::phases::delay_counts_from;
use crate::testing::Outcome::{self, Allow, Next, Status};
use crate::testing::{Ran, Reaction, START_MS, World, get};

/// A request on which the two access handlers decide like this.
fn ask(world: &mut World, first: Outcome, second: Outcome) -> Ran {
    // Reactions are plain functions: their decisions are in the extensions of the exchange.
    let mut x = world.exchange(&get("/say/in"));
    x.extensions.push([first, second]);
    world.begin(
        x,
        &[
            ("access", |x, _| decision(x, 0)),
            ("access_2", |x, _| decision(x, 1)),
        ],
    )
}

fn decision(x: &mut Exchange, at: usize) -> Outcome {
    let decisions = x.extensions.get::<[Outcome; 2]>();
    decisions.map_or(Next, |decisions| decisions[at])
}

/// The status of a request on which they decide like this.
fn status(world: &mut World, first: Outcome, second: Outcome) -> u16 {
    ask(world, first, second).x.response.head.status
}

#[test]
fn satisfy_all_asks_everybody_and_one_refusal_is_enough() {
    let mut world = World::new("");
    for (first, second, expected) in [
        (Next, Next, 200),
        (Allow, Next, 200),
        (Allow, Allow, 200),
        (Status(403), Allow, 403),
        (Allow, Status(403), 403),
        (Status(401), Allow, 401),
        (Allow, Status(401), 401),
        (Status(503), Allow, 503),
    ] {
        assert_eq!(status(&mut world, first, second), expected);
    }
    let ran = ask(&mut world, Status(403), Allow);
    assert!(
        ran.handlers().ends_with("pre_access access"),
        "who comes after it is not asked"
    );
    let ran = ask(&mut world, Status(401), Allow);
    assert!(ran.handlers().ends_with("pre_access access"));
    let ran = ask(&mut world, Allow, Allow);
    assert!(ran.handlers().contains("access access_2 pre_content"));
}

#[test]
fn satisfy_any_lets_in_whom_one_allows() {
    let mut world = World::new("satisfy any;");
    for (first, second, expected) in [
        (Next, Next, 200),
        (Allow, Status(403), 200),
        (Status(403), Allow, 200),
        (Status(401), Allow, 200),
        (Status(403), Next, 403),
        (Next, Status(401), 401),
        (Status(503), Allow, 503),
    ] {
        assert_eq!(status(&mut world, first, second), expected);
    }
    let ran = ask(&mut world, Allow, Status(403));
    assert!(
        ran.handlers().contains("access pre_content"),
        "nobody else is asked"
    );
}

/// A password may still be given after an address was refused, so the client is asked for it.
#[test]
fn of_two_refusals_401_is_told() {
    let mut world = World::new("satisfy any;");
    assert_eq!(status(&mut world, Status(401), Status(403)), 401);
    assert_eq!(status(&mut world, Status(403), Status(401)), 401);
    assert_eq!(status(&mut world, Status(403), Status(403)), 403);
}

#[test]
fn whom_another_allows_is_not_asked_for_a_password() {
    let mut world = World::new("satisfy any;");
    let ran = world.run(
        &get("/say/in"),
        &[
            ("access", |x, _| {
                x.reply
                    .fields
                    .push_id(FieldId::WwwAuthenticate, b"WWW-Authenticate", b"Basic");
                Status(401)
            }),
            ("access_2", |_, _| Allow),
        ],
    );
    assert_eq!(ran.x.response.head.status, 200);
    assert!(ran.x.response.head.get(FieldId::WwwAuthenticate).is_none());
}

#[test]
fn an_access_handler_that_waits_is_asked_again_and_nobody_before_it() {
    let mut world = World::new("");
    let mut ran = world.run(
        &get("/say/in"),
        &[
            ("access_2", |x, _| {
                x.progress.state = State::Waiting(Wait::woken_or_until(START_MS + 5));
                Outcome::Wait
            }),
            ("access_2", |_, _| Status(403)),
        ],
    );
    assert!(ran.handlers().ends_with("access access_2"));
    world.resume(&mut ran.x);
    assert_eq!(
        (ran.handlers().as_str(), ran.x.response.head.status),
        ("access_2", 403)
    );
}

#[test]
fn only_what_no_rule_allowed_is_logged_as_forbidden_by_rule() {
    let mut world = World::new("satisfy any;");
    status(&mut world, Status(403), Next);
    assert!(world.said().contains("access forbidden by rule"));
    status(&mut world, Status(401), Next);
    assert!(!world.said().contains("forbidden"));
}

#[test]
fn the_page_of_a_refusal_is_not_refused_again() {
    let mut world = World::new("satisfy any; error_page 403 /say/page; location /say/page { }");
    let mut ran = ask(&mut world, Status(403), Next);
    assert_eq!(ran.x.response.head.status, 403);
    assert_eq!(world.pull(&mut ran.x).0, "page");
    assert_eq!(ran.x.progress.access_code, 0);
}

#[test]
fn auth_delay_holds_back_what_is_unauthorized_and_nothing_else() {
    let mut world = World::new("auth_delay 2s;");
    assert_eq!(status(&mut world, Next, Next), 200);
    assert_eq!(status(&mut world, Status(403), Next), 403);
    assert!(!world.said().contains("delaying"));

    let mut ran = ask(&mut world, Status(401), Next);
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 2000))
    );
    assert!(world.said().contains("delaying unauthorized request"));
    ran.handlers();
    world.pass(1999);
    world.resume(&mut ran.x);
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 2000)),
        "woken too early"
    );
    assert_eq!(world.said(), "", "it is said once");
    world.pass(1);
    world.resume(&mut ran.x);
    assert_eq!(
        (ran.x.progress.state, ran.x.response.head.status),
        (State::Responding, 401)
    );
    assert_eq!(ran.handlers(), "", "nobody is asked again");
}

#[test]
fn a_page_that_is_refused_itself_is_held_back_once_more() {
    let mut world = World::new("auth_delay 2s; error_page 401 /page;");
    let mut ran = world.run(
        &get("/a"),
        &[
            ("access", |_, _| Status(401)),
            ("access", |_, _| Status(401)),
        ],
    );
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 2000))
    );
    world.pass(2000);
    world.resume(&mut ran.x);
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 4000)),
        "the page"
    );
    world.pass(2000);
    world.resume(&mut ran.x);
    assert_eq!(
        (ran.x.progress.state, ran.x.response.head.status),
        (State::Responding, 401)
    );
}

/// So a client that measures the answer does not learn how long the look at the password took.
#[test]
fn the_delay_counts_from_when_a_handler_that_waited_began() {
    let mut world = World::new("auth_delay 2s; error_page 401 /page;");
    let refuse: Reaction = |x, _| {
        delay_counts_from(x, START_MS);
        Status(401)
    };
    let waits: Reaction = |x, _| {
        x.progress.state = State::Waiting(Wait::until(START_MS + 500));
        Outcome::Wait
    };
    let again: Reaction = |_, _| Status(401);
    let mut ran = world.run(
        &get("/a"),
        &[("access", waits), ("access", refuse), ("access", again)],
    );
    world.pass(500);
    world.resume(&mut ran.x);
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 2000))
    );
    world.pass(1500);
    world.resume(&mut ran.x);
    assert_eq!(
        ran.x.progress.state,
        State::Waiting(Wait::until(START_MS + 4000)),
        "the page's own"
    );
}

#[test]
fn without_auth_delay_a_401_is_told_at_once() {
    let mut world = World::new("");
    assert_eq!(status(&mut world, Status(401), Next), 401);
}
