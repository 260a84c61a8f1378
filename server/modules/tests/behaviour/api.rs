//! `api` and `status_zone`: paths, versions, members, errors, zones of servers and locations.

use std::cell::Cell;

use serde_json::{Value, json};
use server_base::clock::Clock;
use server_base::logs::Logs;
use server_base::resolver_status::{Request, ResolverStatus, Response};
use server_http::exchange::{Ctx, Env, Queues};
use server_http::{phases, stats};

use crate::disk::Disk;
use crate::servers::Servers;
use crate::site::{Answer, Site};

/// Returns the JSON document of a response.
fn document(answer: &Answer) -> Value {
    assert_eq!(answer.field("Content-Type"), "application/json");
    serde_json::from_str(&answer.body).expect("the body is JSON")
}

fn get(site: &mut Site, target: &str) -> Value {
    let answer = site.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.body);
    document(&answer)
}

fn request(site: &mut Site, method: &str, target: &str) -> Answer {
    site.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ))
}

/// Makes a request up to its log. Requests of [`get`] end without a log.
fn visit(site: &mut Site, request: &str) {
    let (mut x, _) = site.begin_with(request);
    phases::log(
        &mut x,
        &mut Ctx {
            files: &mut Disk::default(),
            connector: &mut Servers::default(),
            clock: &Clock::new(0, 0),
            logs: &mut Logs::default(),
            env: &Env::default(),
            budget: &Cell::new(0),
            queues: &Queues::default(),
        },
    );
}

fn visit_target(site: &mut Site, target: &str) {
    visit(
        site,
        &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    );
}

/// Asserts the status and the code of an error.
fn assert_error(answer: &Answer, status: u16, code: &str, text: &str) {
    assert_eq!(answer.status, status, "{}", answer.body);
    let document = document(answer);
    let error = json!({"status": status, "text": text, "code": code});
    assert_eq!(document["error"], error);
    assert_eq!(document["request_id"].as_str().map(str::len), Some(32));
    let href = "https://nginx.org/en/docs/http/ngx_http_api_module.html";
    assert_eq!(document["href"], href);
}

#[test]
fn lists_name_versions_and_paths() {
    let mut site = Site::server("location /api { api; }");
    for target in ["/api", "/api/"] {
        assert_eq!(get(&mut site, target), json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }
    let root = get(&mut site, "/api/9/");
    assert_eq!(root, get(&mut site, "/api/9"));
    for name in root.as_array().expect("a list") {
        let name = name.as_str().expect("a name");
        get(&mut site, &format!("/api/9/{name}"));
    }
    let http = get(&mut site, "/api/9/http");
    assert!(
        http.as_array()
            .is_some_and(|names| names.contains(&json!("server_zones")))
    );
}

#[test]
fn errors_have_nginx_codes() {
    let mut site = Site::server("location /api/ { api; }");
    let version = site.get("/api/10/nginx");
    assert_error(&version, 404, "UnknownVersion", "unknown version");
    let path = site.get("/api/9/slabs/");
    assert_error(&path, 404, "PathNotFound", "path not found");
    let zone = site.get("/api/9/http/server_zones/none");
    assert_error(&zone, 404, "ServerZoneNotFound", "server zone not found");
    let zone = site.get("/api/9/http/location_zones/none");
    assert_error(
        &zone,
        404,
        "LocationZoneNotFound",
        "location zone not found",
    );
    let worker = site.get("/api/9/workers/1");
    assert_error(&worker, 404, "WorkerNotFound", "worker not found");
    let old = document(&site.get("/api/3/none"));
    assert_eq!((&old["path"], &old["method"]), (&json!(""), &json!("")));
    assert!(document(&site.get("/api/4/none")).get("path").is_none());
    for method in ["DELETE", "POST", "PATCH", "PUT", "OPTIONS"] {
        let answer = request(&mut site, method, "/api/9/http/requests");
        assert_error(&answer, 405, "MethodDisabled", "method disabled");
    }
}

#[test]
fn methods_that_a_path_does_not_have_are_disabled() {
    let mut site = Site::server("location /api/ { api write=on; }");
    for (method, path) in [
        ("PUT", "/api/9/http/requests"),
        ("POST", "/api/9/connections"),
        ("DELETE", "/api/9/nginx"),
        ("DELETE", "/api/9/http/server_zones/"),
        ("PATCH", "/api/9/ssl"),
    ] {
        let answer = request(&mut site, method, path);
        assert_error(&answer, 405, "MethodDisabled", "method disabled");
    }
    assert_eq!(request(&mut site, "DELETE", "/api/9/ssl").status, 204);
}

#[test]
fn fields_limit_the_members() {
    let mut site = Site::server("location /api { api; }");
    let nginx = get(&mut site, "/api/9/nginx");
    assert_eq!(nginx["version"], "1.31.4");
    assert_eq!(nginx["generation"], 0);
    assert_eq!(nginx["timestamp"], "1994-11-06T08:51:17.000Z");
    let some = get(&mut site, "/api/9/nginx?x=1&fields=version%2Cgeneration");
    assert_eq!(some, json!({"version": "1.31.4", "generation": 0}));
    assert_eq!(get(&mut site, "/api/9/nginx?fields="), json!({}));
    let workers = get(&mut site, "/api/9/workers?fields=id");
    assert_eq!(workers, json!([{"id": 0}]));
}

#[test]
fn head_has_no_body_and_access_rules_apply() {
    let mut site = Site::server("location /api { api write=on; allow 192.0.2.1; deny all; }");
    let head = request(&mut site, "HEAD", "/api/9/");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    site.come_from("192.0.2.9:1");
    assert_eq!(site.get("/api/9/").status, 403);
    assert_eq!(request(&mut site, "DELETE", "/api/9/ssl").status, 403);
}

#[test]
fn servers_and_locations_are_counted_in_their_zones() {
    let mut site = Site::http(
        "server {
             root /www;
             status_zone api_site;
             location / { status_zone api_files; location /off { status_zone off; } }
             location /moved { return 301 /; }
             location /gone { status_zone api_gone; return 444; }
             location /inside { status_zone api_gone; rewrite ^ /f last; }
             location /api { api write=on; }
         }",
    )
    .file("/www/f", "file")
    .file("/www/off", "off");
    for target in ["/f", "/none", "/off", "/moved", "/gone", "/inside"] {
        visit_target(&mut site, target);
    }
    let zones = get(&mut site, "/api/9/http/server_zones");
    let zone = &zones["api_site"];
    assert_eq!(
        (&zone["requests"], &zone["processing"]),
        (&json!(7), &json!(1))
    );
    assert_eq!(zone["discarded"], 1, "444 is no response");
    let codes = json!({"200": 3, "301": 1, "404": 1});
    let responses = json!({
        "1xx": 0, "2xx": 3, "3xx": 1, "4xx": 1, "5xx": 0, "codes": codes, "total": 5,
    });
    assert_eq!(zone["responses"], responses);
    let zones = get(&mut site, "/api/9/http/location_zones?fields=requests");
    let files = json!({"requests": 3});
    assert_eq!(
        zones,
        json!({"api_files": files, "api_gone": {"requests": 1}})
    );
    let old = get(&mut site, "/api/6/http/location_zones/api_files");
    assert!(old["responses"].get("codes").is_none(), "since version 7");
    let path = "/api/9/http/location_zones/api_files";
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    assert_eq!(get(&mut site, path)["requests"], 0);
    let path = "/api/9/http/server_zones/api_site";
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    let zone = get(&mut site, path);
    assert_eq!(
        (&zone["requests"], &zone["processing"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn requests_without_phases_are_counted() {
    let mut site = Site::http("server { status_zone api_refused; location /api { api; } }");
    visit(&mut site, "GET / HTTP/1.1\r\n\r\n");
    let zone = get(&mut site, "/api/9/http/server_zones/api_refused");
    assert_eq!(zone["responses"]["codes"], json!({"400": 1}));
    assert_eq!(
        (&zone["requests"], &zone["processing"]),
        (&json!(2), &json!(1))
    );
}

#[test]
fn zones_are_shared_by_servers_and_kept_over_reloads() {
    let conf = "server { server_name a; status_zone api_shared; return 200; }
         server { server_name b; status_zone api_shared; return 200; }
         server { server_name localhost; location /api { api; } }";
    let mut first = Site::http(conf);
    visit(&mut first, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut second = Site::http(conf);
    drop(first);
    visit(&mut second, "GET / HTTP/1.1\r\nHost: b\r\n\r\n");
    let zone = get(&mut second, "/api/9/http/server_zones/api_shared");
    assert_eq!(
        (&zone["requests"], &zone["responses"]["2xx"]),
        (&json!(2), &json!(2))
    );
    drop(second);
    let mut third = Site::http(conf);
    let zone = get(&mut third, "/api/9/http/server_zones/api_shared");
    assert_eq!(zone["requests"], 0, "no configuration used it");
}

#[test]
fn zones_of_limits_count_their_results() {
    let mut site = Site::http(
        "limit_req_zone $arg_k zone=api_req:1m rate=1r/s;
         limit_req_zone $arg_other zone=api_second:1m rate=1r/s;
         limit_conn_zone $arg_k zone=api_conn:1m;
         server {
             root /www;
             location / { limit_req zone=api_req burst=1; }
             location /both { limit_req zone=api_second; limit_req zone=api_req; }
             location /dry { limit_req zone=api_req burst=1; limit_req_dry_run on; }
             location /conn { limit_conn api_conn 1; }
             location /conn/dry { limit_conn api_conn 1; limit_conn_dry_run on; }
             location /api { api write=on; }
         }",
    )
    .file("/www/f", "file")
    .file("/www/both", "file")
    .file("/www/dry", "file")
    .file("/www/conn", "file")
    .file("/www/conn/dry", "file");
    let path = "/api/9/http/limit_reqs/api_req";
    for target in [
        "/f?k=a", "/f?k=a", "/f?k=a", "/f", "/dry?k=a", "/dry?k=b", "/dry?k=b",
    ] {
        site.get(target);
    }
    let counts = json!({"passed": 2, "delayed": 1, "rejected": 1, "delayed_dry_run": 1, "rejected_dry_run": 1});
    assert_eq!(get(&mut site, path), counts);
    // A request that one zone refuses is counted there alone.
    site.get("/both?k=c&other=x");
    site.get("/both?k=c&other=y");
    let zones = get(&mut site, "/api/6/http/limit_reqs?fields=passed,rejected");
    assert_eq!(zones["api_second"], json!({"passed": 1, "rejected": 0}));
    assert_eq!(zones["api_req"], json!({"passed": 3, "rejected": 2}));
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    assert_eq!(get(&mut site, path)["rejected"], 0);
    let first = site.begin("/conn?k=a");
    for target in ["/conn?k=a", "/conn/dry?k=a", "/conn?k=b", "/conn"] {
        site.get(target);
    }
    let path = "/api/9/http/limit_conns/api_conn";
    let counts = json!({"passed": 2, "rejected": 1, "rejected_dry_run": 1});
    assert_eq!(get(&mut site, path), counts);
    assert_eq!(
        get(&mut site, "/api/9/http/limit_conns"),
        json!({"api_conn": counts})
    );
    drop(first);
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    assert_eq!(get(&mut site, path)["passed"], 0);
    for (path, code, text) in [
        (
            "limit_conns/api_req",
            "LimitConnNotFound",
            "limit_conn not found",
        ),
        (
            "limit_reqs/api_conn",
            "LimitReqNotFound",
            "limit_req not found",
        ),
    ] {
        let path = format!("/api/9/http/{path}");
        assert_error(&site.get(&path), 404, code, text);
        assert_error(&request(&mut site, "DELETE", &path), 404, code, text);
    }
}

#[test]
fn counts_of_a_limit_stay_while_a_configuration_has_its_zone() {
    let conf = "limit_req_zone $arg_k zone=api_kept:1m rate=1r/s;
         server { root /www; location / { limit_req zone=api_kept; } location /api { api; } }";
    let mut first = Site::http(conf).file("/www/f", "file");
    site_get(&mut first);
    let mut second = Site::http(conf).file("/www/f", "file");
    drop(first);
    let path = "/api/9/http/limit_reqs/api_kept";
    assert_eq!(get(&mut second, path)["passed"], 1);
    drop(second);
    let mut third = Site::http(conf);
    assert_eq!(
        get(&mut third, path)["passed"],
        0,
        "no configuration used it"
    );
}

/// Makes a request with a key.
fn site_get(site: &mut Site) {
    assert_eq!(site.get("/f?k=a").status, 200);
}

#[test]
fn zones_of_resolvers_are_shown_and_reset() {
    let mut site = Site::http(
        "resolver 127.0.0.1:5 status_zone=api_names;
         server { location /api { api write=on; } }",
    );
    let zone = ResolverStatus::attach("api_names");
    for (kind, count) in [(Request::Name, 3), (Request::Srv, 2), (Request::Addr, 1)] {
        (0..count).for_each(|_| zone.count_request(kind));
    }
    for code in [0, 0, 1, 2, 3, 4, 5, 9] {
        zone.count_response(Response::of_code(code));
    }
    zone.count_response(Response::TimedOut);
    let path = "/api/9/resolvers/api_names";
    let requests = json!({"name": 3, "srv": 2, "addr": 1});
    let responses = json!({
        "noerror": 2, "formerr": 1, "servfail": 1, "nxdomain": 1, "notimp": 1, "refused": 1, "timedout": 1,
        "unknown": 1,
    });
    let expected = json!({"requests": requests, "responses": responses});
    assert_eq!(get(&mut site, path), expected);
    assert_eq!(get(&mut site, "/api/5/resolvers")["api_names"], expected);
    let some = get(&mut site, "/api/9/resolvers?fields=requests");
    assert_eq!(some["api_names"], json!({"requests": requests}));
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    assert_eq!(
        get(&mut site, path)["requests"],
        json!({"name": 0, "srv": 0, "addr": 0})
    );
    assert_eq!(get(&mut site, path)["responses"]["noerror"], 0);
    let missing = site.get("/api/9/resolvers/none");
    let text = "resolver zone not found";
    assert_error(&missing, 404, "ResolverZoneNotFound", text);
    let all = request(&mut site, "DELETE", "/api/9/resolvers");
    assert_error(&all, 405, "MethodDisabled", "method disabled");
}

#[test]
fn lost_workers_are_counted_until_a_reset() {
    let mut site = Site::server("location /api { api write=on; }");
    let path = "/api/9/processes";
    assert_eq!(get(&mut site, path), json!({"respawned": 0}));
    stats::set_respawned(2);
    assert_eq!(get(&mut site, path), json!({"respawned": 2}));
    assert_eq!(request(&mut site, "DELETE", path).status, 204);
    assert_eq!(get(&mut site, path), json!({"respawned": 0}));
}

#[test]
fn failures_of_handshakes_have_members_since_version_8() {
    let mut site = Site::server("location /api { api; }");
    let old = get(&mut site, "/api/7/ssl");
    assert_eq!(old.as_object().map(serde_json::Map::len), Some(3));
    let new = get(&mut site, "/api/8/ssl");
    for name in [
        "no_common_protocol",
        "no_common_cipher",
        "handshake_timeout",
        "peer_rejected_cert",
    ] {
        assert!(new[name].is_u64(), "{name}");
    }
    let failures = new["verify_failures"].as_object().expect("an object");
    let names: Vec<&String> = failures.keys().collect();
    assert_eq!(
        names,
        [
            "expired_cert",
            "hostname_mismatch",
            "no_cert",
            "other",
            "revoked_cert"
        ]
    );
}

#[test]
fn wrong_directives_are_refused() {
    let refused = |inner: &str| Site::refused(&format!("server {{ {inner} }}"));
    for (inner, text) in [
        (
            "location / { api write=yes; }",
            "invalid parameter \"write=yes\"",
        ),
        ("location / { api on; }", "invalid parameter \"on\""),
        ("location / { api; api; }", "is duplicate"),
        ("location ~ /api { api; }", "needs a location with a prefix"),
        ("status_zone a; status_zone b;", "is duplicate"),
        (
            "location / { status_zone a; status_zone off; }",
            "is duplicate",
        ),
    ] {
        let said = refused(inner);
        assert!(said.contains(text), "{inner}: {said}");
    }
}
