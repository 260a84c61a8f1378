//! Subrequests as exchanges: their initial state, state that is lent to them, their limits, and subrequests for a
//! head alone.

use crate::exchange::subrequest::TooMany;
use crate::exchange::{
    Answer, Exchange, MAX_SUBREQUESTS, MAX_SUBREQUESTS_DEEP, MAX_URI_CHANGES, State, Subrequest,
    Wait,
};
use crate::phases::Phase;
use crate::testing::{START_MS, World, get};

fn open(
    world: &mut World,
    x: &mut Exchange,
    uri: &[u8],
    args: &[u8],
) -> Result<Subrequest, TooMany> {
    Subrequest::open(x, &world.cx(), uri, args)
}

#[test]
fn a_subrequest_begins_with_the_rewriting_of_its_server_and_as_an_internal_get() {
    let mut world = World::http("server { server_name other; } server { server_name localhost; }");
    let mut x = world
        .run(
            "POST /a?b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
            &[],
        )
        .x;
    x.client.may_push = true;
    world.pass(7);
    let child = open(&mut world, &mut x, b"/sub.txt", b"q")
        .expect("it is the first")
        .exchange;
    assert_eq!(
        (
            child.target.uri.as_slice(),
            child.target.args.as_slice(),
            child.target.extension()
        ),
        (&b"/sub.txt"[..], &b"q"[..], &b"txt"[..])
    );
    assert_eq!(
        (
            child.progress.phase,
            child.progress.state,
            child.target.method
        ),
        (
            Phase::ServerRewrite,
            State::Running,
            engines::http::Method::Get
        )
    );
    assert!(
        child.route.internal
            && child.target.has_args
            && child.is_subrequest()
            && !x.is_subrequest()
    );
    assert!(!child.client.may_push);
    assert_eq!(
        (child.route.server, child.route.location),
        (1, x.route.http.servers[1].location)
    );
    assert_eq!(
        (child.started_ms, child.input.bytes),
        (START_MS + 7, x.input.bytes)
    );
    assert_eq!(
        child.route.uri_changes,
        MAX_URI_CHANGES + 1,
        "redirections of its own"
    );
    let bare = open(&mut world, &mut x, b"/sub", b"")
        .expect("it is the second")
        .exchange;
    assert!(!bare.target.has_args);
}

#[test]
fn what_belongs_to_the_clients_request_is_lent_while_a_subrequest_works() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.extensions.push(7_u32);
    x.vars.request_id = Some([9; 16]);
    let mut child = open(&mut world, &mut x, b"/sub", b"")
        .expect("it is the first")
        .exchange;
    assert_eq!(child.target.host, b"");
    let seen = x.with_parent_state(&mut child, |child| {
        child.extensions.push("of the child");
        (
            child.target.host.clone(),
            child.extensions.get::<u32>().copied(),
            child.vars.request_id,
            child.head.bytes(child.head.target).to_vec(),
        )
    });
    assert_eq!(
        seen,
        (
            b"localhost".to_vec(),
            Some(7),
            Some([9; 16]),
            b"/a".to_vec()
        )
    );
    assert_eq!(
        (
            x.target.host.as_slice(),
            x.extensions.get(),
            x.vars.request_id
        ),
        (&b"localhost"[..], Some(&"of the child"), Some([9; 16]))
    );
    assert!(child.target.host.is_empty() && child.extensions.get::<u32>().is_none());
}

#[test]
fn subrequests_lie_so_deep_and_no_deeper() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    for depth in 1..=MAX_SUBREQUESTS_DEEP {
        x = *open(&mut world, &mut x, b"/sub", b"")
            .expect("not too deep")
            .exchange;
        assert_eq!(x.subrequests.nesting, depth);
    }
    assert_eq!(world.said(), "");
    assert_eq!(open(&mut world, &mut x, b"/deep", b"").err(), Some(TooMany));
    let said = world.said();
    assert!(
        said.contains("[error]") && said.contains("subrequests cycle while processing \"/deep\""),
        "{said}"
    );
}

#[test]
fn one_request_leads_to_so_many_subrequests_and_no_more() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.subrequests.begun = MAX_SUBREQUESTS - 1;
    assert!(open(&mut world, &mut x, b"/last", b"").is_ok());
    assert_eq!(open(&mut world, &mut x, b"/more", b"").err(), Some(TooMany));
    let said = world.said();
    assert!(
        said.contains("[crit]")
            && said.contains("request reference counter overflow while processing \"/more\""),
        "{said}"
    );
}

#[test]
fn subrequests_of_subrequests_count_as_the_clients() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    let mut child = open(&mut world, &mut x, b"/sub", b"")
        .expect("it is the first")
        .exchange;
    let inner = x.with_parent_state(&mut child, |child| {
        open(&mut world, child, b"/inner", b"").is_ok()
    });
    assert!(inner);
    assert_eq!((x.subrequests.begun, child.subrequests.begun), (2, 0));
}

#[test]
fn the_next_request_in_the_same_memory_has_none_yet() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.subrequests.begun = MAX_SUBREQUESTS;
    x.clear_reply();
    let (generation, client) = (world.generation.clone(), x.client);
    x.begin(generation, 0, client, &world.clock);
    assert!(open(&mut world, &mut x, b"/sub", b"").is_ok());
}

#[test]
fn the_charset_of_the_response_is_known_at_any_depth() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.reply.charset = b"koi8-r".to_vec();
    let mut child = open(&mut world, &mut x, b"/sub", b"")
        .expect("it is the first")
        .exchange;
    child.reply.charset = b"utf-8".to_vec();
    let inner = open(&mut world, &mut child, b"/inner", b"")
        .expect("it is the second")
        .exchange;
    assert_eq!(
        (
            x.subrequests.charset(),
            child.subrequests.charset(),
            inner.subrequests.charset()
        ),
        (&b""[..], &b"koi8-r"[..], &b"koi8-r"[..])
    );
}

#[test]
fn a_head_alone_is_given_as_soon_as_it_is_there() {
    let mut world = World::new("log_subrequest on;");
    let mut ran = world.run(&get("/a"), &[]);
    ran.handlers();
    let Answer::Head(child) = ran.x.ask(&mut world.cx(), b"/none", b"") else {
        panic!("it has a response")
    };
    assert_eq!(child.reply.status, 404);
    assert!(ran.handlers().ends_with(" log"));
    assert_eq!(
        ran.x.progress.state,
        State::Responding,
        "the exchange is left alone"
    );
}

#[test]
fn who_asks_waits_as_long_as_the_subrequest_and_asks_for_the_same_one() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[]);
    ran.handlers();
    let x = &mut ran.x;
    for _ in 0..2 {
        assert!(matches!(
            x.ask(&mut world.cx(), b"/late/100/x", b""),
            Answer::Wait
        ));
        assert_eq!(
            x.progress.state,
            State::Waiting(Wait::until(START_MS + 100))
        );
    }
    world.pass(100);
    let Answer::Head(child) = x.ask(&mut world.cx(), b"/late/100/x", b"") else {
        panic!("it has a response")
    };
    assert_eq!(child.reply.status, 200);
    assert_eq!(ran.handlers().matches("server_rewrite").count(), 1);
    assert!(
        matches!(ran.x.ask(&mut world.cx(), b"/say/x", b""), Answer::Head(_)),
        "another is another"
    );
}

#[test]
fn who_asks_is_closed_upon_with_the_subrequest() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    assert!(x.progress.keep_alive);
    assert!(matches!(
        x.ask(&mut world.cx(), b"/drop", b""),
        Answer::None
    ));
    assert_eq!(
        (x.progress.state, x.reply.status, x.progress.keep_alive),
        (State::Aborted, 444, false)
    );
}

#[test]
fn who_may_ask_for_no_more_is_closed_upon() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.subrequests.begun = MAX_SUBREQUESTS;
    assert!(matches!(
        x.ask(&mut world.cx(), b"/say/x", b""),
        Answer::None
    ));
    assert_eq!(x.progress.state, State::Aborted);
}

#[test]
fn a_reply_that_is_forgotten_takes_the_subrequest_along_that_was_waited_for() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[]);
    assert!(matches!(
        ran.x.ask(&mut world.cx(), b"/late/100/x", b""),
        Answer::Wait
    ));
    ran.handlers();
    ran.x.clear_for_redirect();
    assert!(
        matches!(ran.x.ask(&mut world.cx(), b"/say/x", b""), Answer::Head(_)),
        "it asks anew"
    );
    assert_eq!(ran.handlers().matches("server_rewrite").count(), 1);
}

#[test]
fn when_to_look_at_an_exchange_again_is_its_timer_or_its_bodys() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    assert_eq!(x.due_ms(), None);
    x.progress.pull_wait = Some(Wait::until(5));
    assert_eq!(x.due_ms(), Some(5));
    x.progress.state = State::Waiting(Wait::until(9));
    assert_eq!(x.due_ms(), Some(9));
}
