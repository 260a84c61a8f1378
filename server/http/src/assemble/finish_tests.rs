//! The result of closing `http`: settings at every level, handlers of locations, names, and which modules are active.

use std::fs::File;
use std::sync::Arc;

use conf::{Arity, Contexts, DirectiveDef};
use server_base::errlog::{ErrorLog, Level, Sink};
use server_base::opened::OpenedLogs;

use crate::conf_core::{CoreLoc, ResolverLoc};
use crate::exchange::Exchange;
use crate::module::{Content, Handler, Module};
use crate::settings_set::Conf;
use crate::testing::{PROBE, World, get, http_of};

/// A setting in effect for a request.
fn limit(world: &mut World, target: &str) -> u64 {
    let x = world.get(target);
    x.route.core_loc().bodies.client_max_body_size.0
}

fn name(x: &Exchange) -> String {
    String::from_utf8_lossy(&x.route.own_location().name).into_owned()
}

#[test]
fn a_level_that_says_nothing_has_what_the_level_around_it_says() {
    let mut world = World::http(
        "client_max_body_size 1;
         server {
             location /own { client_max_body_size 3;
                 location /own/inner { }
                 location /own/other { client_max_body_size 4; }
             }
             location /server { }
             client_max_body_size 2;
         }",
    );
    for (target, expected) in [
        ("/", 2),
        ("/server", 2),
        ("/own", 3),
        ("/own/inner", 3),
        ("/own/other", 4),
    ] {
        assert_eq!(limit(&mut world, target), expected, "{target}");
    }
    assert_eq!(
        limit(&mut World::new(""), "/"),
        1 << 20,
        "where nobody says anything"
    );
}

#[test]
fn what_stands_behind_a_block_reaches_into_it() {
    let mut world = World::http("server { location /a { } } client_max_body_size 7;");
    assert_eq!(limit(&mut world, "/a"), 7);
}

#[test]
fn servers_do_not_see_each_others_settings() {
    let mut world = World::http(
        "server { server_name a; client_max_body_size 1; merge_slashes off; } server { server_name b; }",
    );
    let mut ask = |host: &str| {
        let x = world
            .run(&format!("GET /x//y HTTP/1.1\r\nHost: {host}\r\n\r\n"), &[])
            .x;
        (
            x.route.core_loc().bodies.client_max_body_size.0,
            x.target.uri,
        )
    };
    assert_eq!(ask("a"), (1, b"/x//y".to_vec()));
    assert_eq!(ask("b"), (1 << 20, b"/x/y".to_vec()));
}

/// The addresses of the settings of each location.
fn places<T: Conf>(world: &World) -> Vec<*const T> {
    let locations = world.generation.locations.iter();
    locations
        .map(|l| std::ptr::from_ref(l.confs.get()))
        .collect()
}

#[test]
fn levels_that_write_nothing_of_a_unit_share_its_settings() {
    let world = World::http(
        "client_max_body_size 1;
         server { server_name a; location /x { } location /y { } }
         server { server_name b; location /x { } location /y { client_max_body_size 1; } }
         server { server_name c; client_max_body_size 1; location /x { } location /y { } }",
    );
    // By number: http, then each server with its locations.
    let core = places::<CoreLoc>(&world);
    assert_eq!(core[1], core[4], "two servers");
    assert!(core[2] == core[3] && core[2] == core[5], "their locations");
    assert_ne!(core[0], core[1], "another depth");
    assert_ne!(core[6], core[5], "what is written is its own, equal or not");
    assert_ne!(core[7], core[1]);
    assert_eq!(core[8], core[9], "both follow from the same server");
    assert_ne!(core[8], core[2]);
    let resolver = places::<ResolverLoc>(&world);
    assert!(resolver[1] == resolver[4] && resolver[1] == resolver[7]);
    let inner = [2, 3, 5, 6, 8, 9].map(|n| resolver[n]);
    assert!(inner.iter().all(|place| *place == inner[0]), "{inner:?}");
}

#[test]
fn a_handler_is_its_locations_own_and_that_of_the_blocks_in_it() {
    let mut world =
        World::new("location /a { probe_handler; limit_except GET { } location /a/b { } }");
    let mut handlers = |head: &str| world.run(head, &[]).handlers();
    assert!(handlers(&get("/a")).contains("handler"));
    assert!(
        handlers("DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n").contains("handler"),
        "limit_except is no location"
    );
    assert!(!handlers(&get("/a/b")).contains("handler"), "a location is");
}

#[test]
fn a_block_that_is_no_location_lies_in_one() {
    let mut world = World::new("location /a { limit_except GET { } } location /b { }");
    let x = world.run("DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n", &[]).x;
    let http = &world.generation;
    let outer = http.locations[x.route.location].mapped;
    assert_ne!(outer, x.route.location);
    assert_eq!(http.locations[outer].name, b"/a");
    assert_eq!(http.locations[outer].mapped, outer);
}

#[test]
fn of_locations_the_kind_decides_and_then_the_name() {
    let mut world = World::new(
        "location / { } location /a { } location = /a/exact { }
         location ^~ /a/only { } location ~ first|only|exact { } location ~ second { }
         location /a/in { location ~ inner { } location /a/in/deep { } }",
    );
    for (target, expected) in [
        ("/", "/"),
        ("/x", "/"),
        ("/a/x", "/a"),
        ("/a/exact", "/a/exact"),
        ("/a/exact/", "first|only|exact"),
        ("/a/only", "/a/only"),
        ("/a/first/second", "first|only|exact"),
        ("/a/second", "second"),
        ("/a/in/deep", "/a/in/deep"),
        ("/a/in/inner", "inner"),
        ("/a/in/deep/inner", "inner"),
    ] {
        assert_eq!(name(&world.get(target)), expected, "{target}");
    }
}

/// A module that does nothing unless one of its directives is written.
const SLEEPER: Module = Module {
    name: "sleeper",
    directives: &[&[DirectiveDef {
        name: "wake",
        contexts: Contexts::HTTP,
        arity: Arity::NOARGS,
        block: false,
        default: "",
        doc: "",
        syntax: "",
        apply: |_, _| Ok(()),
    }]],
    handlers: &[Handler::Content(|_, _| Content::Status(418))],
    header_stage: Some(|_, _| Ok(())),
    stage_of_subrequests: true,
    on_demand: true,
    ..Module::EMPTY
};
/// A module like `SLEEPER` that is always active; its header stage is about heads alone.
const WAKEFUL: Module = Module {
    name: "wakeful",
    handlers: &[Handler::Content(|_, _| Content::Status(419))],
    header_stage: Some(|_, _| Ok(())),
    ..Module::EMPTY
};

#[test]
fn a_dormant_module_is_left_out_where_none_of_its_directives_is_written() {
    for (text, status, stages) in [
        ("server { }", 419, (1, 0)),
        ("wake; server { }", 418, (2, 1)),
    ] {
        let mut world = World::with(text, &[&SLEEPER, &WAKEFUL]);
        assert_eq!(world.get("/").route.err_status, status, "{text}");
        let http = &world.generation;
        assert_eq!(
            (http.header_stages.len(), http.subrequest_stages.len()),
            stages,
            "{text}"
        );
    }
}

#[test]
fn modules_are_asked_in_their_order() {
    let status = |modules| {
        World::with("wake; server { }", modules)
            .get("/")
            .route
            .err_status
    };
    assert_eq!(status(&[&SLEEPER, &WAKEFUL, &PROBE]), 418);
    assert_eq!(status(&[&WAKEFUL, &SLEEPER, &PROBE]), 419);
}

#[test]
fn the_first_of_named_locations_with_one_name_counts() {
    let mut world = World::new(
        "error_page 404 = @named;
         location @named { client_max_body_size 7; } location @named { client_max_body_size 8; }",
    );
    let x = world
        .run(
            &get("/a"),
            &[("content", |_, _| crate::testing::Outcome::Status(404))],
        )
        .x;
    assert_eq!(x.route.core_loc().bodies.client_max_body_size.0, 7);
}

#[test]
fn a_server_without_a_name_is_found_by_those_who_name_none() {
    let mut world = World::http("server { server_name a; } server { }");
    assert_eq!(world.run("GET / HTTP/1.0\r\n\r\n", &[]).x.route.server, 1);
    assert_eq!(
        world
            .run("GET / HTTP/1.0\r\nHost: b\r\n\r\n", &[])
            .x
            .route
            .server,
        0,
        "the default server"
    );
}

#[test]
fn locations_without_an_error_log_have_one_between_them() {
    let http = http_of(
        "server { location /a { } location /b { client_max_body_size 1; } }
         server { error_log /own error; location /c { } location /c2 { } location /d { client_max_body_size 1; } }
         server { root /e; location /f { error_log /own error; } }",
    );
    let named = |at: &usize| String::from_utf8_lossy(&http.locations[*at].name).into_owned();
    let own: Vec<_> = http.with_own_log.iter().map(named).collect();
    assert_eq!(own, ["", "/c", "/c2", "/d", "/f"]);
    let null = Arc::new(null());
    http.attach_logs(
        OpenedLogs::default(),
        &ErrorLog::new(vec![Sink::file(null, Level::Warn)]),
    );
    for (at, location) in http.locations.iter().enumerate() {
        let has_own = location.core.error_logs.is_some();
        assert_eq!(location.core.log().enabled(Level::Warn), !has_own, "{at}");
        assert!(!location.core.log().enabled(Level::Notice), "{at}");
    }
}

fn null() -> File {
    let file = File::options().write(true).open("/dev/null");
    file.expect("it is there")
}

#[test]
fn logs_of_an_older_configuration_follow_the_levels_of_the_newer_one() {
    let opened = || {
        let file = File::options()
            .write(true)
            .open("/dev/null")
            .expect("it is there");
        let mut opened = OpenedLogs::default();
        for path in ["/a", "/b"] {
            opened
                .files
                .insert(path.into(), Arc::new(file.try_clone().expect("it is open")));
        }
        opened
    };
    let attached = |inner: &str, level| {
        let http = http_of(inner);
        let default = ErrorLog::new(vec![Sink::file(Arc::new(null()), level)]);
        http.attach_logs(opened(), &default);
        http
    };
    let old = attached(
        "server { location / { } location /1 { error_log /a error; } location /2 { error_log /a error; }
             location /3 { error_log /b error; } location /6 { error_log /a error; location /6/a { } location /6/b { } }
             location /4 { error_log /b error; root /4; } }",
        Level::Error,
    );
    let new = attached(
        "server { location / { } location /1 { error_log /a debug; } location /2 { error_log /a debug; }
             location /3 { error_log /a debug; } location /6 { error_log /a error; location /6/c { } location /6/b { error_log /a debug; } }
             location /5 { error_log /b debug; root /4; } }",
        Level::Warn,
    );
    assert!(!old.debugs() && new.debugs());
    old.follow_logs(&new);
    let debugs = |name: &str| {
        let found = old.locations.iter().find(|l| l.name == name.as_bytes());
        found.expect("it is there").core.log().enabled(Level::Debug)
    };
    assert!(debugs("/1") && debugs("/2"), "the same place and target");
    assert!(
        old.locations[0].core.log().enabled(Level::Warn),
        "the default one"
    );
    assert!(
        debugs("/6/b"),
        "the first of those that share settings is another one now"
    );
    assert!(
        !debugs("/6") && !debugs("/3"),
        "another level, another target"
    );
    assert!(!debugs("/4"), "another place");
}
