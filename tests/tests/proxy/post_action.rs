//! `post_action`: a request of the server after each response, which the client does not wait for.
//!
//! Sources: nginx 1.31.4 (its documentation does not have the directive); docs/differences.md.

use firstbyte_tests::backend::{Backend, Gate, Step, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, wait_until};

/// A site with pages, and reports of them to a server.
fn server(reports: &Backend, directives: &str) -> Server {
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream reports {{ server {}; }}
             server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/site; {directives}
                 location /pages/ {{ post_action /report; }}
                 location /missing/ {{ error_page 404 /pages/a.txt; }}
                 location = /report {{ internal;
                     proxy_pass http://reports/done?of=$request_uri&bytes=$body_bytes_sent&status=$status&end=$request_completion; }} }}",
            reports.name()
        ),
    );
    server.file("site/pages/a.txt", "a page").start()
}

#[test]
fn each_response_is_reported_with_its_bytes_and_status() {
    let reports = Backend::answering(|_| ok("noted"));
    let server = server(&reports, "");
    let answer = server.get("/pages/a.txt");
    assert_eq!((answer.status, answer.text()), (200, "a page".into()));
    assert_eq!(
        reports.latest().target(),
        "/done?of=/pages/a.txt&bytes=6&status=200&end=OK"
    );
    assert_eq!(server.get("/pages/none.txt").status, 404);
    wait_until("it is reported", || reports.request_count() == 2);
    assert!(reports.latest().target().ends_with("&status=404&end=OK"));
    // The location is that of the error page.
    assert_eq!(server.get("/missing/x").status, 404);
    wait_until("it is reported", || reports.request_count() == 3);
    assert!(
        reports
            .latest()
            .target()
            .contains("of=/missing/x&bytes=6&status=404")
    );
}

/// A server of reports that never answers delays no client, and requests of the server have no reports of their own.
#[test]
fn the_connection_takes_its_next_request_at_once() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let reports = Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(of_script.clone())];
        steps.extend(ok("noted"));
        steps
    });
    let server = server(&reports, "post_action /report;");
    let mut client = server.client();
    for n in 1..=3 {
        assert_eq!(client.get("/pages/a.txt").text(), "a page");
        wait_until("it is being reported", || reports.request_count() == n);
    }
    gate.open();
    assert_eq!(client.get("/pages/a.txt").text(), "a page");
    wait_until("the last one", || reports.request_count() == 4);
}

#[test]
fn a_client_that_leaves_is_reported_too() {
    let reports = Backend::answering(|r| match r.target() {
        "/slow" => vec![Step::Hold],
        _ => ok("noted"),
    });
    let server = server(
        &reports,
        "location = /slow { proxy_pass http://reports; post_action /report; }",
    );
    let mut client = server.client();
    client.send(request("GET", "/slow", &[]));
    wait_until("it is passed on", || reports.request_count() == 1);
    drop(client);
    wait_until("it is reported", || reports.request_count() == 2);
    assert_eq!(
        reports.latest().target(),
        "/done?of=/slow&bytes=0&status=499&end="
    );
}

/// A limit has counted the request of the client.
#[test]
fn limits_do_not_count_a_report() {
    let reports = Backend::answering(|_| ok("noted"));
    let server = Server::http(&format!(
        "limit_req_zone $host zone=rate:1m rate=1r/m;
         limit_conn_zone $host zone=open:1m;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/site; limit_req zone=rate; limit_conn open 1;
             location / {{ post_action /report; }}
             location = /report {{ internal; proxy_pass http://{}/$limit_req_status/$limit_conn_status; }} }}",
        reports.name()
    ));
    let server = server.file("site/a.txt", "a page").start();
    assert_eq!(server.get("/a.txt").text(), "a page");
    assert_eq!(reports.latest().target(), "/PASSED/PASSED");
}

/// nginx closes the connection after the head of the response.
#[test]
fn an_endless_answer_to_a_report_is_cut() {
    let reports = Backend::answering(|_| {
        vec![
            send("HTTP/1.1 200 OK\r\n\r\n"),
            Step::Fill(1 << 30),
            Step::Hold,
        ]
    });
    let server = server(&reports, "");
    assert_eq!(server.get("/pages/a.txt").text(), "a page");
    wait_until("it is reported", || reports.request_count() == 1);
    wait_until("its connection is closed", || reports.open() == 0);
}
