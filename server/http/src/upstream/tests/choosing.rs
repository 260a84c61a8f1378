//! Reports of a pass to the method that chooses its servers: attempts in progress, and response times.

use std::sync::Arc;

use server_upstream::balance::Method;
use server_upstream::balance::least_conn::LeastConn;
use server_upstream::balance::least_time::{LeastTime, Time};

use super::Site;
use crate::exchange::Exchange;
use crate::testing::servers::{Passing, refused};
use crate::upstream::conf::NextUpstream;

/// Two servers that a method chooses from.
fn site(method: impl Method + 'static) -> Site {
    let mut passing = Passing::new();
    passing.servers = vec![1, 2];
    passing.method = Some(Arc::new(method));
    passing.conf.retry.on = NextUpstream(NextUpstream::ERROR);
    Site::new(passing)
}

/// Begins a request; also returns the last byte of its server's address.
fn begin(site: &mut Site) -> (Exchange, String) {
    let x = site.get("/up/a");
    let addr = site.call().addr();
    (x, addr.replace("10.0.0.", "").replace(":80", ""))
}

/// The server of the last attempt answers: its head after some time, and the end of the body after some more.
fn answer(site: &mut Site, x: &mut Exchange, head_ms: u64, body_ms: u64) {
    site.world.clock.mono_ms += head_ms;
    site.call().head(200, &["Content-Length: 2"]);
    site.wake(x);
    site.world.clock.mono_ms += body_ms;
    site.call().data("ok").end();
    site.wake(x);
    site.world.pull(x);
}

#[test]
fn an_attempt_counts_until_its_response_has_ended_or_its_client_has_gone() {
    let mut site = site(LeastConn);
    let (_first, server) = begin(&mut site);
    assert_eq!(server, "1");
    let mut ended = Vec::new();
    for is_answered in [false, true, true, false, true] {
        let (mut x, server) = begin(&mut site);
        assert_eq!(server, "2", "the first one is busy");
        if is_answered {
            answer(&mut site, &mut x, 0, 0);
            ended.push(x);
        }
    }
    let (_second, server) = begin(&mut site);
    assert_eq!(server, "2");
    let servers = [begin(&mut site), begin(&mut site)].map(|(_, server)| server);
    assert!(
        servers.contains(&"1".to_owned()),
        "both are busy: {servers:?}"
    );
}

#[test]
fn the_time_until_the_head_or_the_end_decides() {
    for (time, faster) in [(Time::Header, "2"), (Time::LastByte, "1")] {
        let mut site = site(LeastTime {
            time,
            in_flight: false,
        });
        let (mut x, server) = begin(&mut site);
        assert_eq!(server, "1");
        answer(&mut site, &mut x, 100, 100);
        let (mut x, server) = begin(&mut site);
        assert_eq!(server, "2");
        answer(&mut site, &mut x, 50, 300);
        let (_, server) = begin(&mut site);
        assert_eq!(server, faster, "{time:?}");
    }
}

#[test]
fn a_failed_attempt_has_no_time() {
    let mut site = site(LeastTime {
        time: Time::LastByte,
        in_flight: false,
    });
    let (mut x, server) = begin(&mut site);
    assert_eq!(server, "1");
    site.world.clock.mono_ms += 500;
    site.call().fail(refused());
    site.wake(&mut x);
    answer(&mut site, &mut x, 100, 0);
    // The first server is excluded for 10 s. Then it has no time, and the other one half of its own.
    site.world.clock.mono_ms += 11_000;
    assert_eq!(begin(&mut site).1, "1");
}

#[test]
fn attempts_in_progress_raise_the_time_of_a_server() {
    for time in [Time::Header, Time::LastByte] {
        let mut site = site(LeastTime {
            time,
            in_flight: true,
        });
        let (mut first, server) = begin(&mut site);
        assert_eq!(server, "1");
        answer(&mut site, &mut first, 10, 0);
        let (mut second, _) = begin(&mut site);
        answer(&mut site, &mut second, 10, 0);
        let (_hanging, hanging) = begin(&mut site);
        site.world.clock.mono_ms += 3000;
        // Without `inflight` the second of them would be equal.
        let held = [(); 5].map(|()| begin(&mut site));
        let reached: Vec<&String> = held.iter().map(|(_, server)| server).collect();
        assert!(
            reached.iter().all(|server| **server != hanging),
            "{time:?}: {reached:?}"
        );
    }
}
