//! Directives that depend on the browser: `browser`'s variables, `msie_padding`, `msie_refresh`, `keepalive_disable`.

use crate::site::{Answer, Site};

const MSIE: &str = "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)";
const OPERA: &str = "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.0; en) Opera 8.0";
const CHROME: &str =
    "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux; rv:120.0) Gecko/20100101 Firefox/120.0";

fn get(site: &mut Site, target: &str, agent: &str) -> Answer {
    site.get_with(target, &format!("User-Agent: {agent}\r\n"))
}

#[test]
fn browsers_are_modern_or_ancient() {
    let mut site = Site::server(
        "modern_browser msie 5.5;
         modern_browser gecko 1.0.0;
         ancient_browser Lynx netscape4;
         location / { return 200 \"[$modern_browser][$ancient_browser][$msie]\"; }
         location /in {
             modern_browser unlisted;
             modern_browser_value new.;
             ancient_browser_value old.;
             return 200 \"[$modern_browser][$ancient_browser]\";
         }",
    );
    assert_eq!(get(&mut site, "/", MSIE).body, "[1][][1]");
    assert_eq!(get(&mut site, "/", FIREFOX).body, "[1][][]");
    assert_eq!(get(&mut site, "/", OPERA).body, "[][1][]");
    assert_eq!(get(&mut site, "/", CHROME).body, "[][1][]");
    assert_eq!(site.get("/").body, "[][1][]");
    // The location's own list replaces the outer one.
    assert_eq!(get(&mut site, "/in", "Lynx/2.8").body, "[][old.]");
    assert_eq!(get(&mut site, "/in", CHROME).body, "[new.][]");
    assert_eq!(site.get("/in").body, "[new.][]");
}

#[test]
fn variables_of_browsers_may_be_defined_anew() {
    let mut site = Site::http(
        "map $arg_b $modern_browser { default mapped; }
         server {
             location / { return 200 \"$modern_browser [$msie]\"; }
             location /set { set $msie mine; return 200 $msie; }
         }",
    );
    assert_eq!(get(&mut site, "/", MSIE).body, "mapped [1]");
    assert_eq!(get(&mut site, "/set", CHROME).body, "mine");
}

#[test]
fn error_pages_are_long_enough_to_be_shown() {
    let mut site = Site::server(
        "location /off { msie_padding off; }
         location /301 { return 301 /x; }",
    );
    let padding = "<!-- a padding to disable MSIE and Chrome friendly error page -->";
    for (target, agent, padded) in [
        ("/nothing", MSIE, true),
        ("/nothing", CHROME, true),
        ("/nothing", FIREFOX, false),
        ("/nothing", OPERA, false),
        ("/off", MSIE, false),
        ("/301", MSIE, false),
    ] {
        let answer = get(&mut site, target, agent);
        assert_eq!(answer.body.contains(padding), padded, "{target} {agent}");
        assert_eq!(answer.body.len() > 512, padded, "{target} {agent}");
        let length = answer.field("Content-Length");
        assert_eq!(length, answer.body.len().to_string(), "{target} {agent}");
    }
    let old = site.send(&format!(
        "GET /nothing HTTP/1.0\r\nUser-Agent: {MSIE}\r\n\r\n"
    ));
    assert!(old.body.contains(padding));
}

#[test]
fn internet_explorer_is_led_on_by_a_page() {
    let mut site = Site::server(
        "msie_refresh on;
         location / { return 301 \"http://a/<b> \"; }
         location /302 { return 302 text; }
         location /303 { return 303 text; }
         location /page { error_page 404 =308 http://b/; return 404; }
         location /off { msie_refresh off; return 301 text; }",
    );
    let answer = get(&mut site, "/", MSIE);
    assert_eq!(
        (
            answer.status,
            answer.field("Location"),
            answer.field("Content-Type")
        ),
        (200, "", "text/html")
    );
    assert_eq!(
        answer.body,
        "<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=http://a/%3Cb%3E%20\"></head><body></body></html>\r\n"
    );
    assert_eq!(
        answer.field("Content-Length"),
        answer.body.len().to_string()
    );
    assert!(get(&mut site, "/302", MSIE).body.contains("URL=text\""));
    assert!(
        get(&mut site, "/page", MSIE)
            .body
            .contains("URL=http://b/\"")
    );
    for (target, agent, status) in [
        ("/303", MSIE, 303),
        ("/off", MSIE, 301),
        ("/302", OPERA, 302),
        ("/302", CHROME, 302),
    ] {
        let answer = get(&mut site, target, agent);
        assert_eq!(
            (answer.status, answer.field("Location")),
            (status, "text"),
            "{target} {agent}"
        );
    }
}

#[test]
fn connections_of_old_browsers_are_not_kept_where_they_must_not() {
    let mut site = Site::server("keepalive_disable msie6 safari; location / { return 200; }");
    let post = |agent: &str| {
        format!("POST / HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\nContent-Length: 0\r\n\r\n")
    };
    assert!(!site.send(&post(MSIE)).keep_alive);
    assert!(
        site.send(&post(&MSIE.replace("5.1", "5.1; SV1")))
            .keep_alive
    );
    assert!(site.send(&post(OPERA)).keep_alive);
    assert!(get(&mut site, "/", MSIE).keep_alive);
    let safari = "Mozilla/5.0 (Mac OS X) AppleWebKit/418 (KHTML, like Gecko) Safari/418";
    assert!(!get(&mut site, "/", safari).keep_alive);
    assert!(get(&mut site, "/", &CHROME.replace("X11", "Mac OS X")).keep_alive);
}
