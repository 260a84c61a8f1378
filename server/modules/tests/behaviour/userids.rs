//! `userid`: the cookie, its attributes and its variables.

use base64ct::{Base64, Encoding};

use crate::site::{Answer, NOW_S, Site};

const SHOWN: &str = "add_header X-Got \"[$uid_got]\"; add_header X-Set \"[$uid_set]\";";

fn site(locations: &str) -> Site {
    Site::server(&format!(
        "userid on; {SHOWN} location / {{ return 200 ok; }} {locations}"
    ))
}

/// The value of the cookie `uid` a response sets, "" if none.
fn cookie(answer: &Answer) -> String {
    let value = answer.field("Set-Cookie").strip_prefix("uid=");
    value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn come_again(site: &mut Site, target: &str, cookie: &str) -> Answer {
    site.get_with(target, &format!("Cookie: a=b; UID = {cookie}; c=d\r\n"))
}

#[test]
fn a_client_is_given_an_identifier_and_known_by_it() {
    let mut site = site("");
    let first = site.get("/");
    let (value, set) = (cookie(&first), first.field("X-Set").to_owned());
    let bytes = Base64::decode_vec(&value).expect("base64");
    assert_eq!(bytes.len(), 16);
    // The address of the server and the time.
    assert_eq!(bytes[..4], [192, 0, 2, 2]);
    assert_eq!(bytes[4..8], (NOW_S as u32).to_be_bytes());
    let words = bytes
        .chunks(4)
        .map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes")));
    let shown: String = words.map(|word| format!("{word:08X}")).collect();
    assert_eq!(set, format!("[uid={shown}]"));
    assert_eq!(
        (first.field("X-Got"), first.field("Set-Cookie")),
        ("[]", format!("uid={value}; path=/").as_str())
    );

    let again = come_again(&mut site, "/", &value);
    assert_eq!(
        (
            again.field("X-Got"),
            again.field("X-Set"),
            again.field("Set-Cookie")
        ),
        (set.as_str(), "[]", "")
    );
    assert_ne!(
        cookie(&site.get("/")),
        value,
        "another client is another one"
    );
}

#[test]
fn modes_say_what_is_done() {
    let mut site = site(
        "location /off { userid off; return 200; }
         location /log { userid log; return 200; }
         location /v1 { userid v1; return 200; }
         location /v1/service { userid_service 7; return 200; }
         location /service { userid_service 65534; return 200; }",
    );
    let value = cookie(&site.get("/"));
    let off = come_again(&mut site, "/off", &value);
    assert_eq!(
        (
            off.field("X-Got"),
            off.field("X-Set"),
            cookie(&off).as_str()
        ),
        ("[]", "[]", "")
    );
    let log = come_again(&mut site, "/log", &value);
    assert_ne!(log.field("X-Got"), "[]");
    assert_eq!((log.field("X-Set"), cookie(&log).as_str()), ("[]", ""));
    assert!(site.get("/v1").field("X-Set").starts_with("[uid=00000000"));
    let bytes = |answer: Answer| Base64::decode_vec(&cookie(&answer)).expect("base64");
    assert_eq!(bytes(site.get("/service"))[..4], [0, 0, 0xff, 0xfe]);
    assert_eq!(
        bytes(site.get("/v1"))[..8],
        [[0; 4], (NOW_S as u32).to_ne_bytes()].concat()
    );
}

#[test]
fn the_cookie_has_its_attributes() {
    let mut site = site(
        "location /all {
             userid_name test; userid_domain example.com; userid_path /p; userid_expires 100;
             userid_flags samesite=none secure; userid_flags httponly; userid_p3p 'policyref=\"/p3p.xml\"';
             return 200;
             location /all/not {
                 userid_domain none; userid_expires off; userid_flags off; userid_p3p none;
                 return 200;
             }
         }
         location /max { userid_expires max; userid_flags samesite=lax; return 200; }",
    );
    let answer = site.get("/all");
    let (value, attributes) = answer
        .field("Set-Cookie")
        .split_once("; ")
        .expect("attributes");
    assert!(value.starts_with("test="), "{value}");
    assert_eq!(
        attributes,
        "expires=Sun, 06-Nov-94 08:52:57 GMT; domain=example.com; path=/p; secure; httponly; samesite=none"
    );
    assert_eq!(answer.field("P3P"), "policyref=\"/p3p.xml\"");
    let answer = site.get("/all/not");
    assert!(
        answer.field("Set-Cookie").ends_with("; path=/p"),
        "{}",
        answer.head
    );
    assert_eq!(answer.field("P3P"), "");
    let max = site.get("/max");
    assert!(
        max.field("Set-Cookie")
            .ends_with("; expires=Thu, 31-Dec-37 23:55:55 GMT; path=/; samesite=lax")
    );
}

#[test]
fn a_mark_that_is_missing_is_put_into_the_cookie_the_client_has() {
    let mut site = site("location /mark { userid_mark t; return 200; }");
    let value = cookie(&site.get("/"));
    let marked = cookie(&come_again(&mut site, "/mark", &value));
    assert_eq!(marked, format!("{}t=", &value[..22]));
    assert_eq!(cookie(&come_again(&mut site, "/mark", &marked)), "");
    assert_eq!(
        cookie(&come_again(&mut site, "/", &marked)),
        "",
        "a mark is no reason without one wanted"
    );
    assert!(cookie(&site.get("/mark")).ends_with("t="));
}

#[test]
fn an_identifier_can_be_taken_back() {
    let mut site = Site::http(&format!(
        "map $args $uid_reset {{ default \"\"; yes 1; no 0; log log; }}
         server {{ userid on; {SHOWN} location / {{ return 200; }} }}"
    ));
    let value = cookie(&site.get("/"));
    for args in ["", "?no"] {
        assert_eq!(
            cookie(&come_again(&mut site, &format!("/{args}"), &value)),
            "",
            "{args}"
        );
    }
    let other = cookie(&come_again(&mut site, "/?yes", &value));
    assert!(other.len() == 24 && other != value, "{other}");
    let log = site.logged(|site| {
        let answer = come_again(site, "/?log", &value);
        assert_ne!(cookie(&answer), "");
    });
    assert!(
        log.contains("[notice] ") && log.contains("userid cookie \"uid="),
        "{log}"
    );
    assert!(log.contains("\" was reset"), "{log}");
}

#[test]
fn it_can_be_taken_back_by_set_where_that_is_reached() {
    let mut site = site("location /again { set $uid_reset 1; return 200; }");
    let value = cookie(&site.get("/"));
    assert_eq!(cookie(&come_again(&mut site, "/", &value)), "");
    assert_ne!(cookie(&come_again(&mut site, "/again", &value)), "");
}

#[test]
fn a_broken_cookie_is_logged_and_replaced() {
    let mut site = site("");
    let log = site.logged(|site| {
        for broken in [
            "short",
            "!!!!!!!!!!!!!!!!!!!!!!==",
            "AAAAAAAAAAAAAAAAAAAAAA==",
        ] {
            let answer = come_again(site, "/", broken);
            assert_eq!(cookie(&answer).len(), 24, "{broken}");
            assert_eq!(answer.field("X-Got"), "[]", "{broken}");
        }
    });
    assert!(
        log.contains("client sent too short userid cookie \"a=b; UID = short; c=d\""),
        "{log}"
    );
    assert!(log.contains("client sent invalid userid cookie"), "{log}");
    assert_eq!(log.matches("userid cookie").count(), 2, "once each: {log}");
}

#[test]
fn an_error_met_late_does_not_set_the_cookie_twice() {
    let mut site = Site::server("userid on;").file("/www/f", "0123456789");
    let answer = site.get_with("/f", "Range: bytes=100-\r\n");
    assert_eq!(
        (answer.status, answer.head.matches("Set-Cookie").count()),
        (416, 1),
        "{}",
        answer.head
    );
}
