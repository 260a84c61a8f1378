//! Limits of requests and connections, and the counters of the process.

use crate::site::Site;

#[test]
fn requests_over_the_rate_are_refused() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=over:1m rate=1r/s;
         log_format status $limit_req_status;
         server {
             root /www;
             limit_req_status 429;
             location / { limit_req zone=over; add_header X-Limit \"[$limit_req_status]\" always; }
         }",
    )
    .file("/www/f", "file");
    let answer = site.get("/f?k=a");
    assert_eq!((answer.status, answer.field("X-Limit")), (200, "[PASSED]"));
    let answer = site.get("/f?k=a");
    assert_eq!(
        (answer.status, answer.field("X-Limit")),
        (429, "[REJECTED]")
    );
    // Another key has a bucket of its own, and an empty key is not limited.
    assert_eq!(site.get("/f?k=b").status, 200);
    assert_eq!(site.get("/f").field("X-Limit"), "[]");
    assert_eq!(site.get("/f").status, 200);
}

#[test]
fn a_rate_does_not_follow_the_wall_clock() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=wall:1m rate=1r/m;
         server { root /www; location / { limit_req zone=wall; } }",
    )
    .file("/www/f", "file");
    assert_eq!(site.get("/f?k=a").status, 200);
    let then = site.wall_s;
    for wall_s in [then + 3600, then, then - 3600, then - 7200] {
        site.wall_s = wall_s;
        assert_eq!(site.get("/f?k=a").status, 503, "{wall_s}");
    }
}

#[test]
fn requests_within_the_burst_wait_their_turn() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=burst:1m rate=2r/s;
         server {
             root /www;
             add_header X-Limit $limit_req_status always;
             location / { limit_req zone=burst burst=3 delay=1; }
             location /now { limit_req zone=burst burst=3 nodelay; }
         }",
    )
    .file("/www/f", "file")
    .file("/www/now", "file");
    let waits: Vec<u64> = (0..4).map(|_| site.get("/f?k=a").waited_ms).collect();
    // The rate is one in 500 ms, and one above it need not wait.
    assert_eq!(waits, [0, 0, 500, 1000]);
    let refused = site.get("/f?k=a");
    assert_eq!((refused.status, refused.waited_ms), (503, 0));
    for _ in 0..4 {
        let answer = site.get("/now?k=b");
        assert_eq!((answer.status, answer.waited_ms), (200, 0));
        assert_eq!(answer.field("X-Limit"), "PASSED");
    }
    assert_eq!(site.get("/now?k=b").status, 503);
}

#[test]
fn a_wait_ends_in_the_response_and_counts_once() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=wait:1m rate=1r/s;
         server {
             root /www;
             location / { limit_req zone=wait burst=2; try_files /none /to; }
             location /to { limit_req zone=wait burst=2; add_header X-Limit $limit_req_status; }
         }",
    )
    .file("/www/to", "file");
    site.get("/f?k=a");
    let answer = site.get("/to?k=a");
    assert_eq!((answer.status, answer.waited_ms), (200, 1000));
    assert_eq!(answer.field("X-Limit"), "DELAYED");
    assert_eq!(site.get("/to?k=a").waited_ms, 2000);
}

#[test]
fn of_several_limits_all_must_agree_and_the_longest_delay_counts() {
    let mut site = Site::http(
        "limit_req_zone $arg_a zone=all_a:1m rate=1r/s;
         limit_req_zone $arg_b zone=all_b:1m rate=2r/s;
         server {
             root /www;
             location / { limit_req zone=all_a burst=5; limit_req zone=all_b burst=1; }
         }",
    )
    .file("/www/f", "file");
    assert_eq!(site.get("/f?a=1&b=1").waited_ms, 0);
    assert_eq!(site.get("/f?a=1&b=2").waited_ms, 1000);
    assert_eq!(site.get("/f?a=2&b=1").waited_ms, 500);
    // Refused by the second limit, so the first one does not count it.
    assert_eq!(site.get("/f?a=3&b=1").status, 503);
    assert_eq!(site.get("/f?a=3").waited_ms, 0);
    assert_eq!(site.get("/f?a=1").waited_ms, 2000);
}

#[test]
fn a_dry_run_only_tells() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=dry:1m rate=1r/s;
         limit_req_dry_run on;
         server {
             root /www;
             add_header X-Limit $limit_req_status;
             location /d { limit_req zone=dry burst=1; }
             location /r { limit_req zone=dry; }
         }",
    )
    .file("/www/d", "file")
    .file("/www/r", "file");
    assert_eq!(site.get("/d?k=a").field("X-Limit"), "PASSED");
    let answer = site.get("/d?k=a");
    assert_eq!((answer.status, answer.waited_ms), (200, 0));
    assert_eq!(answer.field("X-Limit"), "DELAYED_DRY_RUN");
    let answer = site.get("/r?k=a");
    assert_eq!(
        (answer.status, answer.field("X-Limit")),
        (200, "REJECTED_DRY_RUN")
    );
}

#[test]
fn limits_say_so_in_the_log_as_nginx_does() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=said:1m rate=1r/s;
         limit_conn_zone $arg_c zone=said_conn:1m;
         server {
             root /www;
             limit_req zone=said burst=1;
             limit_conn said_conn 1;
             location /dry { limit_req_dry_run on; limit_conn_dry_run on; }
         }",
    )
    .file("/www/f", "file")
    .file("/www/dry", "file");
    let said = site.logged(|site| {
        site.get("/f?k=a");
        site.get("/f?k=a");
        site.get("/f?k=a");
        site.get("/dry?k=a");
        site.get("/dry?k=b");
        site.get("/dry?k=b");
        let held = site.begin("/f?c=a");
        site.get("/f?c=a");
        site.get("/dry?c=a");
        drop(held);
    });
    for line in [
        "[warn] # delaying request, excess: 1.000, by zone \"said\"",
        "[error] # limiting requests, excess: 2.000 by zone \"said\"",
        "[error] # limiting requests, dry run, excess: 2.000 by zone \"said\"",
        "[warn] # delaying request, dry run, excess: 1.000, by zone \"said\"",
        "[error] # limiting connections by zone \"said_conn\"",
        "[error] # limiting connections, dry run, by zone \"said_conn\"",
    ] {
        let (level, text) = line.split_once(" # ").expect("each line has its mark");
        let found = |l: &&str| l.contains(level) && l.contains(text);
        assert_eq!(said.lines().filter(found).count(), 1, "{line}\n{said}");
    }
}

#[test]
fn connections_over_the_limit_are_refused_until_one_ends() {
    let mut site = Site::http(
        "limit_conn_zone $arg_k zone=conn:1m;
         limit_conn_zone $arg_s zone=conn_other:1m;
         server {
             root /www;
             limit_conn conn 2;
             add_header X-Limit $limit_conn_status always;
             location /s { limit_conn conn_other 1; limit_conn conn 1; limit_conn_status 429; }
         }",
    )
    .file("/www/f", "file")
    .file("/www/s", "file");
    let one = site.begin("/f?k=a");
    let two = site.begin("/f?k=a");
    let answer = site.get("/f?k=a");
    assert_eq!((answer.status, answer.field("X-Limit")), (503, "REJECTED"));
    assert_eq!(site.get("/f?k=b").field("X-Limit"), "PASSED");
    assert_eq!(site.get("/f").field("X-Limit"), "");
    drop(one);
    assert_eq!(site.get("/f?k=a").status, 200);
    // A request refused by one limit is not counted by the other.
    assert_eq!(site.get("/s?k=a&s=1").status, 429);
    let three = site.begin("/s?s=1");
    assert_eq!(site.get("/s?s=1").status, 429);
    drop((two, three));
    assert_eq!(site.get("/s?k=a&s=1").status, 200);
}

#[test]
fn a_reload_keeps_the_content_of_zones() {
    let conf = "limit_req_zone $arg_k zone=kept:1m rate=1r/s;
         server { root /www; limit_req zone=kept; }";
    let mut old = Site::http(conf).file("/www/f", "file");
    assert_eq!(old.get("/f?k=a").status, 200);
    let mut new = Site::http(conf).file("/www/f", "file");
    assert_eq!(new.get("/f?k=a").status, 503);
    let mut larger = Site::http(&conf.replace("1m", "2m")).file("/www/f", "file");
    assert_eq!(larger.get("/f?k=a").status, 200);
    let refused = Site::refused(&conf.replace("$arg_k", "$arg_l"));
    assert_eq!(
        refused,
        "limit_req \"kept\" uses the \"$arg_l\" key while previously it used the \"$arg_k\" key"
    );
}

#[test]
fn the_status_page_shows_the_counters() {
    use server_http::stats::{Activity, Counted, request};
    let mut site = Site::server(
        "location = /status { stub_status; }
         location = /v { return 200 \"$connections_active $connections_reading $connections_writing $connections_waiting\"; }",
    );
    let mut first = Counted::accepted();
    let second = Counted::accepted();
    first.set(Activity::Writing);
    request();
    let answer = site.get("/status");
    assert_eq!(answer.field("Content-Type"), "text/plain");
    assert_eq!(
        answer.body,
        "Active connections: 2 \nserver accepts handled requests\n 2 2 1 \nReading: 0 Writing: 1 Waiting: 1 \n"
    );
    assert_eq!(site.get("/v").body, "2 0 1 1");
    drop(second);
    first.set(Activity::Reading);
    assert_eq!(site.get("/v").body, "1 1 0 0");
    let post = site.send("POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.status, 405);
}
