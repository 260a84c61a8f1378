//! `health_check` and `match`: requests of checks, and states of the servers by their responses.

use std::cell::Cell;
use std::sync::Arc;

use server_base::clock::Clock;
use server_base::logs::Logs;
use server_base::waker::WakeQueue;
use server_http::detached::{self, Discarded, discard};
use server_http::exchange::{Ctx, Env, Queues};
use server_http::upstream::health::Prober;
use server_upstream::group::{Group, Groups};
use server_upstream::request::Failure;
use server_upstream::shared::SharedPeers;

use crate::disk::Disk;
use crate::servers::{Sent, Servers};
use crate::site::{NOW_S, Site};

/// A site with health checks, and the thread that makes them.
struct Checked {
    site: Site,
    servers: Servers,
    prober: Box<Prober>,
    now_ms: u64,
}

impl Checked {
    /// A site with two servers in the group `name`, which its location `/` checks.
    fn new(name: &str, check: &str) -> Self {
        Self::http(&format!(
            "upstream {name} {{ zone {name} 64k; server 192.0.2.1:81 max_fails=0; server 192.0.2.2:81 max_fails=0; }}
             server {{ location / {{ proxy_pass http://{name}; health_check {check}; }} }}"
        ))
    }

    fn http(conf: &str) -> Self {
        let site = Site::http(conf);
        let servers = site.servers.clone();
        Self {
            prober: Prober::of(site.generation()).expect("there are checks"),
            site,
            servers,
            now_ms: 1000,
        }
    }

    /// Makes the checks that are due. Servers that did not get a response before give an empty 200.
    fn check(&mut self) -> Vec<Sent> {
        let (mut files, mut servers) = (Disk::default(), self.servers.clone());
        let clock = Clock::new(self.now_ms, NOW_S * 1000);
        let (mut logs, env, budget) = (Logs::default(), Env::default(), Cell::new(u64::MAX));
        let queues = Queues::new(WakeQueue::default(), Default::default());
        let mut cx = Ctx {
            files: &mut files,
            connector: &mut servers,
            clock: &clock,
            logs: &mut logs,
            env: &env,
            budget: &budget,
            queues: &queues,
        };
        self.prober.run(&cx);
        for mut request in queues.take_detached() {
            let end = loop {
                match discard(&mut request.exchange, &mut cx) {
                    Discarded::Ended(end) => break end,
                    Discarded::Pending => assert!(!queues.wakers.is_empty(), "it is woken"),
                    Discarded::BudgetSpent => {}
                }
                queues.wakers.take();
            };
            detached::end(&mut request, &mut cx, end);
        }
        self.servers.sent()
    }

    /// Makes the next checks after some milliseconds; returns the ends of the checked addresses, sorted.
    fn check_after(&mut self, ms: u64) -> Vec<String> {
        self.now_ms += ms;
        let mut checked: Vec<String> = self.check().iter().map(address).collect();
        checked.sort();
        checked
    }

    /// Makes the first checks with these responses, in the order of the servers; returns the addresses that clients
    /// get then.
    fn used_after(&mut self, responses: [&str; 2]) -> Vec<String> {
        for response in responses {
            self.servers.answer(response);
        }
        assert_eq!(self.check().len(), 2);
        self.used()
    }

    /// Returns the addresses that four requests of clients reach, each once, sorted.
    fn used(&mut self) -> Vec<String> {
        for _ in 0..4 {
            self.site.get("/");
        }
        let mut used: Vec<String> = self.servers.sent().iter().map(address).collect();
        used.sort();
        used.dedup();
        used
    }
}

/// The peers of a group with a zone.
fn shared(site: &Site, name: &str) -> Arc<SharedPeers> {
    let mut groups = site.generation().main::<Groups>().iter();
    let group = groups.find(|group| &*group.name == name.as_bytes());
    let peers = group.and_then(Group::shared_peers);
    Arc::clone(peers.expect("it has a zone"))
}

/// The last number of the address of a request, and its port.
fn address(sent: &Sent) -> String {
    let text = sent.route.addr.to_string();
    text.rsplit('.').next().unwrap_or_default().to_owned()
}

const BOTH: [&str; 2] = ["1:81", "2:81"];

#[test]
fn each_server_is_checked_in_each_interval() {
    let mut site = Checked::new("hc_interval", "interval=2s");
    assert_eq!(site.check_after(0), BOTH);
    assert_eq!(site.check_after(1999), [""; 0]);
    assert_eq!(site.check_after(1), BOTH);
    let mut default = Checked::new("hc_interval_default", "");
    assert_eq!(default.check_after(0), BOTH);
    assert_eq!(default.check_after(4999), [""; 0]);
    assert_eq!(default.check_after(1), BOTH);
}

#[test]
fn jitter_delays_each_check_up_to_its_time() {
    let mut site = Checked::new("hc_jitter", "interval=1s jitter=2s");
    let mut begun = 0;
    for _ in 0..=20 {
        begun += site.check_after(100).len();
    }
    assert!(begun >= 2, "after 2 s both are checked");
    let times = (0..200).filter(|_| !site.check_after(100).is_empty());
    assert!((6..=40).contains(&times.count()), "of 20 s, 1 to 3 s each");
}

#[test]
fn a_check_is_a_get_with_the_settings_of_its_location() {
    let mut site = Checked::http(
        "upstream hc_request { zone hc_request 64k; server 192.0.2.1:81; }
         server { location /app/ { proxy_pass http://hc_request/other/; proxy_set_header X-A b; proxy_read_timeout 7s;
             health_check uri=/health%20y?x=1; } }",
    );
    let sent = site.check();
    assert_eq!(
        sent[0].text(),
        "GET /health%20y?x=1\nHost: hc_request\nX-A: b\n"
    );
    assert_eq!(sent[0].route.timeouts.read_ms, 7000);
    assert!(sent[0].route.pool.is_none() && !sent[0].request.keep);
    let mut plain = Checked::new("hc_request_plain", "");
    assert_eq!(plain.check()[0].line(), "GET /");
}

#[test]
fn a_port_replaces_that_of_the_server_for_checks_alone() {
    let mut site = Checked::new("hc_port", "port=8080");
    site.servers.answer("500\n\n");
    assert_eq!(site.check_after(0), ["1:8080", "2:8080"]);
    assert_eq!(site.used(), ["2:81"]);
}

#[test]
fn connections_are_kept_for_checks_with_a_time_alone() {
    let mut site = Checked::new("hc_keepalive", "keepalive_time=10s");
    let sent = site.check();
    let pool = sent[0].route.pool.expect("a pool");
    assert!(sent[0].request.keep);
    assert_eq!((pool.time_ms, pool.timeout_ms), (10_000, 10_000));
    site.site.get("/");
    let of_client = site.servers.sent().remove(0).route.pool;
    assert_ne!(of_client.map(|pool| pool.id), Some(pool.id));
}

#[test]
fn statuses_from_200_to_399_pass() {
    for (status, passes) in [(200, true), (399, true), (400, false), (500, false)] {
        let mut site = Checked::new(&format!("hc_status_{status}"), "");
        let used = site.used_after([&format!("{status}\n\n"), "200\n\n"]);
        assert_eq!(used.contains(&BOTH[0].to_owned()), passes, "{status}");
    }
}

#[test]
fn a_failed_connection_excludes_a_server_until_it_passes_again() {
    let mut site = Checked::new("hc_refused", "");
    site.servers.fail(Failure::Closed);
    site.check();
    assert_eq!(site.used(), ["2:81"]);
    site.check_after(5000);
    assert_eq!(site.used(), BOTH);
}

#[test]
fn a_server_that_passes_again_starts_slowly() {
    let mut site = Checked::http(
        "upstream hc_slow { zone hc_slow 64k; server 192.0.2.1:81 max_fails=0 slow_start=1h; \
             server 192.0.2.2:81 max_fails=0; }
         server { location / { proxy_pass http://hc_slow; health_check; } }",
    );
    assert_eq!(site.used_after(["500\n\n", "200\n\n"]), ["2:81"]);
    site.check_after(5000);
    assert_eq!(site.used(), ["2:81"], "its share is 0 at first");
    site.servers.answer("200\n\n");
    site.servers.answer("500\n\n");
    site.check_after(5000);
    assert_eq!(site.used(), ["1:81"], "no other server is usable");
}

#[test]
fn a_fault_of_this_server_is_no_result() {
    let mut site = Checked::new("hc_ours", "");
    site.servers.fail(Failure::NoConnection);
    site.check();
    assert_eq!(site.used(), BOTH);
}

#[test]
fn a_check_without_tls_settings_has_failed() {
    let mut site = Checked::http(
        "upstream hc_tls { zone hc_tls 64k; server 192.0.2.1:81; }
         map $remote_addr $file { default /absent.pem; }
         server { location / { proxy_pass https://hc_tls; proxy_ssl_certificate $file; proxy_ssl_certificate_key $file;
             health_check; } }",
    );
    for _ in 0..2 {
        let unread = "cannot load certificate \"/absent.pem\"";
        site.servers.fail(Failure::Certificate(unread.into()));
    }
    let mut logging = std::mem::replace(&mut site.site, Site::server(""));
    let log = logging.logged(|_| assert_eq!(site.check_after(0), ["1:81"]));
    let check = "while SSL handshaking to upstream, health check \"\" of peer 192.0.2.1:81";
    for text in [
        "cannot load certificate \"/absent.pem\"",
        "peer is unhealthy",
    ] {
        let mut lines = log.lines().filter(|line| line.contains(text));
        assert!(lines.any(|line| line.contains(check)), "{text}: {log}");
    }
    assert_eq!(logging.get("/").status, 502, "it is excluded");
    assert_eq!(site.check_after(5000), ["1:81"]);
    let view = shared(&logging, "hc_tls").group_view(site.now_ms);
    assert_eq!(
        (view.peers[0].checks.checks, view.peers[0].checks.fails),
        (2, 2)
    );
}

#[test]
fn time_without_health_is_downtime() {
    let mut site = Checked::new("hc_downtime", "mandatory interval=5s");
    let peers = shared(&site.site, "hc_downtime");
    let downtimes = |now_ms| {
        let view = peers.group_view(now_ms);
        let all = view.peers.iter().map(|peer| {
            let stats = &peer.stats;
            (stats.down_start_ms, stats.downtime_ms(now_ms))
        });
        all.collect::<Vec<_>>()
    };
    site.servers.answer("500\n\n");
    // It begins with the first check, and ends at once for the second server.
    site.check_after(0);
    assert_eq!(downtimes(3000), [(Some(1000), 2000), (Some(1000), 0)]);
    site.servers.answer("200\n\n");
    site.servers.answer("500\n\n");
    site.check_after(5000);
    assert_eq!(downtimes(6000), [(Some(1000), 5000), (Some(6000), 0)]);
    assert_eq!(downtimes(8000), [(Some(1000), 5000), (Some(6000), 2000)]);
}

#[test]
fn fails_and_passes_count_results_in_a_row() {
    let mut site = Checked::new("hc_counts", "fails=2 passes=2");
    for (responses, used) in [
        (["500\n\n", "200\n\n"], &BOTH[..]),
        (["200\n\n", "200\n\n"], &BOTH),
        (["500\n\n", "200\n\n"], &BOTH),
        (["500\n\n", "200\n\n"], &BOTH[1..]),
        (["200\n\n", "200\n\n"], &BOTH[1..]),
        (["200\n\n", "200\n\n"], &BOTH),
    ] {
        assert_eq!(site.used_after(responses), used);
        site.now_ms += 5000;
    }
}

#[test]
fn a_mandatory_check_admits_a_server_with_its_first_success() {
    let mut site = Checked::new("hc_mandatory", "mandatory");
    assert_eq!(site.site.get("/").status, 502);
    assert_eq!(site.used_after(["200\n\n", "404\n\n"]), BOTH[..1]);
}

#[test]
fn one_failed_check_of_two_locations_excludes_a_server() {
    let mut site = Checked::http(
        "upstream hc_two { zone hc_two 64k; server 192.0.2.1:81 max_fails=0; server 192.0.2.2:81 max_fails=0; }
         server {
             location / { proxy_pass http://hc_two; health_check; }
             location /b { proxy_pass http://hc_two; health_check uri=/b; } }",
    );
    for response in ["200\n\n", "200\n\n", "500\n\n", "200\n\n"] {
        site.servers.answer(response);
    }
    assert_eq!(site.check().len(), 4);
    assert_eq!(site.used(), ["2:81"]);
}

#[test]
fn error_pages_redirects_and_hidden_fields_do_not_apply_to_checks() {
    let mut site = Checked::http(
        "upstream hc_pages { zone hc_pages 64k; server 192.0.2.1:81 max_fails=0; server 192.0.2.2:81 max_fails=0; }
         match moved { header X-Accel-Redirect = /b; header Server; }
         server {
             proxy_intercept_errors on; error_page 500 502 = /b;
             location / { proxy_pass http://hc_pages; health_check match=moved; }
             location /b { proxy_pass http://hc_pages; } }",
    );
    let moved = "500\nServer: x\nX-Accel-Redirect: /b\n\n";
    assert_eq!(site.used_after([moved, "500\n\n"]), ["1:81"]);
    site.now_ms += 5000;
    site.servers.fail(Failure::Closed);
    assert_eq!(site.check_after(0).len(), 2, "no error page is fetched");
}

#[test]
fn the_log_has_changes_and_errors_with_the_check() {
    let mut site = Checked::http(
        "match fine { body ~ ok; }
         upstream hc_log { zone hc_log 64k; server 192.0.2.1:81; }
         server { location / { proxy_pass http://hc_log; health_check match=fine port=99; } }",
    );
    let name = "health check \"fine\" of peer 192.0.2.1:81 in upstream \"hc_log\", port 99";
    let mut site_log = std::mem::replace(&mut site.site, Site::server(""));
    let log = site_log.logged(|_| {
        for response in [
            "200\n\nbad",
            "200\n\nbad",
            "200\n\nok",
            "404\n\nok",
            "500\n\n",
        ] {
            site.servers.answer(response);
            site.check_after(5000);
        }
        site.servers.fail(Failure::Closed);
        site.check_after(5000);
    });
    let lines: Vec<&str> = log
        .lines()
        .map(|line| &line[line.find('[').expect("a level")..])
        .map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest))
        .collect();
    assert_eq!(
        lines,
        [
            format!("peer is unhealthy while checking body, {name}"),
            format!("peer is healthy while checking body, {name}"),
            format!("peer is unhealthy while checking body, {name}"),
            format!("upstream prematurely closed connection while connecting to upstream, {name}"),
        ]
    );
}

/// Whether a response passes the lines of a `match`.
fn matches(lines: &str, response: &str) -> bool {
    thread_local!(static NAMES: Cell<u32> = const { Cell::new(0) });
    NAMES.set(NAMES.get() + 1);
    let name = format!("hc_match_{}", NAMES.get());
    let mut site = Checked::http(&format!(
        "match m {{ {lines} }} map $upstream_status $good {{ 200 1; 204 yes; 404 0; }}
         upstream {name} {{ zone {name} 64k; server 192.0.2.1:81 max_fails=0; server 192.0.2.2:81 max_fails=0; }}
         server {{ location / {{ proxy_pass http://{name}; health_check match=m; }} }}"
    ));
    site.used_after([response, response]).len() == 2
}

#[test]
fn match_tests_the_status() {
    for (line, passing, failing) in [
        ("status 200;", [200, 200], [204, 404]),
        ("status ! 500;", [200, 501], [500, 500]),
        ("status 200 204;", [200, 204], [201, 206]),
        ("status ! 301 302;", [300, 303], [301, 302]),
        ("status 200-399;", [200, 399], [199, 400]),
        ("status ! 400-599;", [200, 399], [400, 599]),
        ("status 301-303 307;", [301, 307], [304, 306]),
        ("", [200, 599], [0, 0]),
    ] {
        for status in passing {
            assert!(matches(line, &format!("{status}\n\n")), "{line} {status}");
        }
        for status in failing.iter().filter(|status| **status > 0) {
            assert!(!matches(line, &format!("{status}\n\n")), "{line} {status}");
        }
    }
}

#[test]
fn match_tests_fields() {
    for (line, fields, passes) in [
        ("header A = b;", "a: b", true),
        ("header A = b;", "A: c", false),
        ("header A = b;", "B: b", false),
        ("header A = b;", "A: c\nA: b", true),
        ("header A != b;", "A: c", true),
        ("header A != b;", "A: b", false),
        ("header A != b;", "B: c", false),
        ("header A != b;", "A: c\nA: b", false),
        ("header A ~ ^b+$;", "A: bb", true),
        ("header A ~ ^b+$;", "A: bc", false),
        ("header A ~ ^b+$;", "B: bb", false),
        ("header A !~ ^b+$;", "A: bc", true),
        ("header A !~ ^b+$;", "A: bb", false),
        ("header A !~ ^b+$;", "B: c", false),
        ("header A;", "A: ", true),
        ("header A;", "B: c", false),
        ("header ! A;", "B: c", true),
        ("header ! A;", "A: c", false),
        ("header A; header B = c;", "A: x\nB: c", true),
        ("header A; header B = c;", "A: x\nB: d", false),
    ] {
        let response = format!("200\n{fields}\n\n");
        assert_eq!(matches(line, &response), passes, "{line} {fields}");
    }
}

#[test]
fn match_tests_the_body() {
    assert!(matches(
        "body ~ \"Welcome to nginx!\";",
        "200\n\n<h1>Welcome to nginx!</h1>"
    ));
    assert!(!matches("body ~ Welcome;", "200\n\nwelcome"));
    assert!(matches("body !~ \"maintenance mode\";", "200\n\n"));
    assert!(!matches(
        "body !~ \"maintenance mode\";",
        "200\n\nin maintenance mode"
    ));
    assert!(!matches("status 404; body ~ ok;", "200\n\nok"));
}

#[test]
fn the_first_256_kib_of_a_body_are_examined() {
    for (before, passes) in [(262_142, true), (262_143, false), (262_144, false)] {
        let body = "x".repeat(before) + "ok and more";
        let response = format!("200\n\n{body}");
        assert_eq!(matches("body ~ ok;", &response), passes, "{before}");
    }
}

#[test]
fn match_requires_variables() {
    let line = "require $good $upstream_http_x;";
    assert!(matches(line, "200\nX: 1\n\n"));
    assert!(matches(line, "204\nX: 1\n\n"));
    assert!(!matches(line, "404\nX: 1\n\n"), "it is 0");
    assert!(!matches(line, "500\nX: 1\n\n"), "it is empty");
    assert!(!matches(line, "200\n\n"), "X is missing");
}
