//! `experiment`: users, cookies, arms, hosts, phases and fields of responses.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use server_http::experiments::Phase;
use tls::Info;

use crate::site::{Answer, NOW_S, Site};
use crate::tls_settings::pair;

const KEY: (&str, &[u8]) = ("/etc/nginx/key", b"0123456789abcdef0123456789abcdef\n");

/// A site with experiments in `http`.
pub(crate) fn site(experiments: &str, server: &str) -> Site {
    site_with(experiments, server, KEY.1)
}

fn site_with(experiments: &str, server: &str, key: &[u8]) -> Site {
    let text = format!(
        "experiment_key key; {experiments}
         server {{ server_name localhost; root /www; {server} }}"
    );
    Site::http_with(&text, &[(KEY.0, key)])
}

const AB: &str = "experiment x { arm a; arm b; }";
pub(crate) const SHOW: &str = "location / { return 200 $experiment_x; }";

/// The value of the cookie that a response sets, "" for none.
fn cookie(answer: &Answer) -> String {
    let value = answer.field("Set-Cookie").strip_prefix("fb_user=");
    let value = value.and_then(|value| value.split(';').next());
    value.unwrap_or_default().to_owned()
}

fn again(site: &mut Site, target: &str, cookie: &str) -> Answer {
    site.get_with(target, &format!("Cookie: a=b; fb_user={cookie}; c=d\r\n"))
}

fn count(answer: &Answer, name: &str) -> usize {
    let lines = answer.head.lines();
    lines
        .filter(|line| line.starts_with(&format!("{name}: ")))
        .count()
}

#[test]
fn first_request_is_assigned_and_sets_the_cookie() {
    let mut site = site(AB, SHOW);
    let mut arms = HashSet::new();
    for _ in 0..50 {
        let first = site.get("/");
        let value = cookie(&first);
        assert_eq!(value.len(), 32, "{}", first.head);
        let second = again(&mut site, "/", &value);
        assert_eq!(
            (second.field("Set-Cookie"), &second.body),
            ("", &first.body)
        );
        arms.insert(first.body);
    }
    assert_eq!(arms, HashSet::from(["a".to_owned(), "b".to_owned()]));
}

#[test]
fn cookies_of_others_are_replaced() {
    let mut site = site(AB, SHOW);
    let good = cookie(&site.get("/"));
    let other = site_with(AB, SHOW, b"another key of another fleet").get("/");
    for bad in [
        "",
        "x",
        &good[..31],
        &format!("{good}0"),
        &good.to_uppercase(),
        &"0".repeat(32),
        &cookie(&other),
    ] {
        // A value without letters is equal in capital letters.
        let is_changed = bad != good;
        let answer = again(&mut site, "/", bad);
        assert_eq!(cookie(&answer).len() == 32, is_changed, "{bad}");
        assert_ne!(cookie(&answer), bad);
        assert!(["a", "b"].contains(&answer.body.as_str()), "{bad}");
    }
    // The valid one of several counts.
    let fields = format!("Cookie: fb_user=bad\r\nCookie: z=1; fb_user={good}\r\n");
    assert_eq!(site.get_with("/", &fields).field("Set-Cookie"), "");
    // Browsers send cookies of several paths in one field.
    for cookies in [
        format!("fb_user=bad; fb_user={good}"),
        format!("fb_user={good}; fb_user=bad"),
    ] {
        let fields = format!("Cookie: {cookies}\r\n");
        assert_eq!(
            site.get_with("/", &fields).field("Set-Cookie"),
            "",
            "{cookies}"
        );
    }
}

#[test]
fn only_requests_that_read_a_variable_get_a_cookie() {
    let mut site = site(
        AB,
        "location / { return 200 plain; } location /x { return 200 $experiment_x; }",
    );
    let plain = site.get("/");
    assert_eq!(
        (plain.field("Set-Cookie"), plain.field("Cache-Control")),
        ("", "")
    );
    assert_ne!(cookie(&site.get("/x")), "");
}

#[test]
fn experiments_share_a_cookie_and_nothing_else() {
    let text = "experiment x { arm a; arm b; } experiment y { arm a; arm b; }
                experiment z { user cookie name=other domain=b.c max_age=1h; arm a; arm b; }";
    let show = "location / { return 200 $experiment_x$experiment_y; }
                location /z { return 200 $experiment_x$experiment_z; }";
    let mut site = site(text, show);
    let mut together = BTreeMap::new();
    for _ in 0..400 {
        let answer = site.get("/");
        assert_eq!(count(&answer, "Set-Cookie"), 1);
        *together.entry(answer.body).or_insert(0) += 1;
    }
    // 100 each; five standard deviations are 43.
    assert_eq!(together.len(), 4, "{together:?}");
    assert!(
        together.values().all(|n| (57..=143).contains(n)),
        "{together:?}"
    );
    let both = site.get("/z");
    assert_eq!(count(&both, "Set-Cookie"), 2, "{}", both.head);
    assert!(
        both.head
            .contains("; Max-Age=3600; Domain=b.c; Path=/; HttpOnly; SameSite=Lax")
    );
}

#[test]
fn every_kind_of_response_sets_the_cookie() {
    let mut site = site(
        AB,
        "set $seen $experiment_x;
         location /text { return 200 a; } location /moved { return 301 /; }
         location /error { return 503; error_page 503 /page; } location /page { return 200 p; }
         location /late { return 404; }
         location /file { }",
    )
    .file("/www/file", "text");
    for (target, status) in [
        ("/text", 200),
        ("/moved", 301),
        ("/error", 503),
        ("/late", 404),
        ("/none", 404),
        ("/file", 200),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(count(&answer, "Set-Cookie"), 1, "{target}");
        assert_eq!(answer.field("Cache-Control"), "private", "{target}");
    }
    let head = site.send("HEAD /file HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(count(&head, "Set-Cookie"), 1);
    let file = site.get("/file");
    let fields = format!("If-None-Match: {}\r\n", file.field("ETag"));
    let cached = site.get_with("/file", &fields);
    assert_eq!((cached.status, count(&cached, "Set-Cookie")), (304, 1));
    assert_eq!(cached.field("Cache-Control"), "private");
}

#[test]
fn responses_that_depend_on_the_user_are_private() {
    let mut site = site(
        "experiment x { user address; arm a; arm b; }",
        "set $seen $experiment_x;
         location /a { add_header Cache-Control 'public, max-age=60'; return 200; }
         location /b { add_header Cache-Control 'max-age=60, Private'; return 200; }
         location /c { add_header Cache-Control no-store; return 200; }
         location /d { expires 1h; return 200; }",
    );
    for (target, fields) in [("/a", 2), ("/b", 1), ("/c", 1), ("/d", 2)] {
        let answer = site.get(target);
        assert_eq!(count(&answer, "Cache-Control"), fields, "{}", answer.head);
        assert_eq!(answer.field("Set-Cookie"), "", "{target}");
    }
}

#[test]
fn cookie_is_secure_over_tls() {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let text = format!(
        "experiment_key key; {AB}
         server {{ listen 443 ssl; ssl_certificate c.pem; ssl_certificate_key k.pem; {SHOW} }}"
    );
    let files = [
        KEY,
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
    ];
    let mut site = Site::http_with(&text, &files);
    site.come_over(0, Info::default());
    let answer = site.get("/");
    assert!(
        answer.field("Set-Cookie").contains("; Secure; "),
        "{}",
        answer.head
    );
}

#[test]
fn subrequests_have_the_arm_of_their_request() {
    let mut site = site(
        AB,
        "set $seen $experiment_x;
         location /page { ssi on; default_type text/html; return 200
             '$experiment_x <!--# include virtual=\"/inner\" --> <!--# echo var=\"experiment_x\" -->'; }
         location /inner { return 200 $experiment_x; }",
    );
    for _ in 0..20 {
        let answer = site.get("/page");
        let arms: Vec<&str> = answer.body.split(' ').collect();
        assert!(
            arms.len() == 3 && arms.iter().all(|arm| *arm == arms[0]),
            "{}",
            answer.body
        );
        assert_eq!(count(&answer, "Set-Cookie"), 1);
    }
}

/// The head has left without a cookie, so a new user could not be known again.
#[test]
fn late_variables_issue_no_cookie() {
    let mut site = site(
        AB,
        "location /page { ssi on; default_type text/html; return 200
             '[<!--# include virtual=\"/inner\" -->][<!--# echo var=\"experiment_x\" default=\"-\" -->]'; }
         location /inner { return 200 '$experiment_x.'; }
         location / { return 200 $experiment_x; }",
    );
    let answer = site.get("/page");
    assert_eq!(
        (answer.body.as_str(), answer.field("Set-Cookie")),
        ("[.][-]", "")
    );
    let first = site.get("/");
    let known = again(&mut site, "/page", &cookie(&first));
    assert_eq!(known.body, format!("[{0}.][{0}]", first.body));
}

#[test]
fn users_are_known_by_address_or_variable() {
    let text = "experiment x { user address; arm a; arm b; }
                experiment y { user $arg_user; arm a; arm b; }";
    let show = "location / { return 200 $experiment_x$experiment_y; }";
    let mut one = site(text, show);
    let mut other = site(text, show);
    let mut seen = HashSet::new();
    for host in 0..40 {
        let peer = format!("192.0.2.{host}:{}", 1000 + host);
        let target = format!("/?user=u{host}");
        let first = one.come_from(&peer).get(&target);
        assert_eq!(count(&first, "Set-Cookie"), 0);
        let mapped = format!("[::ffff:192.0.2.{host}]:1");
        assert_eq!(other.come_from(&mapped).get(&target).body, first.body);
        seen.insert(first.body);
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(one.get("/").body.len(), 1, "no user of the variable");
    assert_eq!(one.come_from("unix:").get("/").body, "");
}

#[test]
fn an_experiment_of_a_server_is_about_its_requests_alone() {
    let text = "experiment_key key;
         server { server_name one; experiment x { user address; arm a; arm b; } location / { return 200 $experiment_x; } }
         server { server_name two; location / { return 200 [$experiment_x]; } }";
    let mut site = Site::http_with(text, &[KEY]);
    let mut get = |host| site.send(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(get("one").body.len(), 1);
    let two = get("two");
    assert_eq!((two.body.as_str(), two.field("Cache-Control")), ("[]", ""));
}

#[test]
fn phases_follow_the_clock() {
    let text = "experiment x { start 1994-11-06T09:00:00Z; end 1994-11-07T09:00:00Z; pre_period 1h; arm a; arm b; }";
    let mut site = site(text, "location / { return 200 [$experiment_x]; }");
    let start_s: u64 = 784_112_400;
    assert!(start_s > NOW_S);
    let day_s = 86_400;
    for (wall_s, phase) in [
        (start_s - 3601, Phase::Off),
        (start_s - 3600, Phase::Before),
        (start_s - 1, Phase::Before),
        (start_s, Phase::Live),
        (start_s + day_s - 1, Phase::Live),
        (start_s + day_s, Phase::Off),
    ] {
        site.wall_s = wall_s;
        let answer = site.get("/");
        let is_live = phase == Phase::Live;
        assert_eq!(answer.body != "[]", is_live, "{wall_s}");
        // Users of the pre-period are the users of the experiment.
        assert_eq!(!cookie(&answer).is_empty(), phase != Phase::Off, "{wall_s}");
        let is_private = answer.field("Cache-Control") == "private";
        assert_eq!(is_private, phase != Phase::Off, "{wall_s}");
    }
}

#[test]
fn hosts_follow_arms() {
    let text = "experiment_key key;
         experiment x { user $arg_u; share 50%; host static.test;
             arm a host=S1.test; arm b host=s2.test; }
         server { server_name localhost; location / { return 200 $experiment_x/$experiment_x_host; } }
         server { server_name s1.test; location / { return 200 s1; } }
         server { server_name s2.test; location / { return 404; }
             location /own { add_header Timing-Allow-Origin https://a.b; return 200; } }
         server { server_name static.test; location / { return 200 static; } }";
    let mut site = Site::http_with(text, &[KEY]);
    let mut seen = HashSet::new();
    for user in 0..40 {
        seen.insert(site.get(&format!("/?u={user}")).body);
    }
    let expected = ["a/s1.test", "b/s2.test", "/static.test"].map(str::to_owned);
    assert_eq!(seen, HashSet::from(expected));
    let mut timing = |host: &str, path: &str| {
        let answer = site.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let fields = count(&answer, "Timing-Allow-Origin");
        assert!(fields <= 1, "{}", answer.head);
        answer.field("Timing-Allow-Origin").to_owned()
    };
    assert_eq!(timing("localhost", "/"), "");
    assert_eq!(timing("s1.test", "/"), "*");
    assert_eq!(timing("s2.test", "/"), "*", "errors, too");
    assert_eq!(timing("s2.test", "/own"), "https://a.b");
    assert_eq!(timing("static.test", "/"), "*");
    let http = &site.generation().http;
    let arms: Vec<_> = http.servers.iter().map(|server| server.arm).collect();
    let arm = |at: usize| arms[at].map(|id| (id.experiment, id.arm));
    assert_eq!(
        [arm(0), arm(1), arm(2), arm(3)],
        [None, Some((0, 0)), Some((0, 1)), None]
    );
}

/// Arms of users, by experiments that read `$arg_u`.
fn arms(experiments: &str, names: &[&str], users: usize) -> Vec<Vec<String>> {
    let variables = names.iter().map(|name| format!("$experiment_{name}"));
    let variables = variables.collect::<Vec<_>>().join("|");
    let mut site = site(
        experiments,
        &format!("location / {{ return 200 {variables}; }}"),
    );
    let mut of = |user| site.get(&format!("/?u={user}")).body;
    let all = (0..users).map(|user| of(user).split('|').map(str::to_owned).collect());
    all.collect()
}

#[test]
fn assignment_depends_on_key_name_and_user_alone() {
    let x = "experiment x { user $arg_u; share 40%; arm a weight=3; arm b; }";
    let alone = arms(x, &["x"], 300);
    let others =
        "experiment w { user $arg_u; arm a; arm b; } experiment y { user address; arm a; arm b; }";
    assert_eq!(arms(&format!("{others} {x}"), &["x"], 300), alone);
    assert_eq!(arms(&format!("{x} {others}"), &["x"], 300), alone);
    let more = x.replace("40%", "60%");
    for (one, other) in alone.iter().zip(arms(&more, &["x"], 300)) {
        assert!(one[0].is_empty() || *one == other, "a user changed the arm");
    }
    assert_ne!(
        arms(&x.replace("experiment x", "experiment y"), &["y"], 300),
        alone
    );
}

#[test]
fn users_are_in_one_experiment_of_a_group() {
    let member = |name: &str, share: u32, more: &str| {
        format!(
            "experiment {name} {{ user $arg_u; share {share}%; exclusion_group g {more}; arm a; arm b; }}"
        )
    };
    let (m, n) = (member("m", 30, ""), member("n", 50, ""));
    let users = 2000;
    let both = arms(&format!("{m}{n}"), &["m", "n"], users);
    let in_m = both.iter().filter(|arms| !arms[0].is_empty()).count();
    let in_n = both.iter().filter(|arms| !arms[1].is_empty()).count();
    assert!(
        both.iter()
            .all(|arms| arms[0].is_empty() || arms[1].is_empty())
    );
    // Five standard deviations are 102 and 112.
    assert!(
        in_m.abs_diff(600) < 102 && in_n.abs_diff(1000) < 112,
        "{in_m} {in_n}"
    );
    // The order of the configuration does not count, that of names does.
    assert_eq!(arms(&format!("{n}{m}"), &["m", "n"], users), both);
    // A part that is fixed does not move if others come.
    let fixed = member("n", 50, "at=50%");
    let two = arms(&format!("{m}{fixed}"), &["n"], 300);
    let l = member("l", 20, "");
    assert_eq!(arms(&format!("{m}{fixed}{l}"), &["n"], 300), two);
    assert_eq!(arms(&fixed, &["n"], 300), two);
}

#[test]
fn hundred_experiments_serve() {
    let names: Vec<String> = (0..100).map(|n| format!("e{n}")).collect();
    let arm = |n: u32| format!("arm arm{n} weight={}; ", n + 1);
    let inner: String = (0..10).map(arm).collect();
    let block = |name: &String| format!("experiment {name} {{ user $arg_u; {inner} }}\n");
    let text: String = names.iter().map(block).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = arms(&text, &names, 20);
    assert!(all.iter().flatten().all(|arm| arm.starts_with("arm")));
}

#[test]
fn documented_example_loads_without_warnings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
    let text = fs::read_to_string(path).expect("the document is part of the tree");
    let example = text.split("```nginx\nhttp {\n").nth(1);
    let example = example.and_then(|rest| rest.split("}\n```").next());
    let example = example.expect("it has an example");
    let (certificate, key) = pair("example.com", &rcgen::PKCS_ECDSA_P256_SHA256);
    let files = [
        ("/etc/firstbyte/experiment.key", KEY.1),
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
    ];
    let text = format!("ssl_certificate c.pem; ssl_certificate_key k.pem; {example}");
    let mut warnings = Site::warnings_with(&text, &files);
    // Its end comes some day.
    warnings.retain(|warning| !warning.contains("has ended"));
    assert_eq!(warnings, [""; 0]);
}
