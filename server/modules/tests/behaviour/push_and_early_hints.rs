//! Responses sent before the final one: pushes and early hints.

use crate::site::Site;

/// Returns the pushes of a `GET`.
fn pushes(site: &mut Site, target: &str) -> Vec<String> {
    pushes_of(
        site,
        &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    )
}

fn pushes_of(site: &mut Site, request: &str) -> Vec<String> {
    let (x, _) = site.begin_with(request);
    let pushes = x
        .response
        .early_responses
        .iter()
        .flat_map(|ahead| &ahead.pushes);
    pushes
        .map(|target| String::from_utf8_lossy(target).into_owned())
        .collect()
}

/// Returns the hints for a request, one per line.
fn hints(site: &mut Site, request: &str) -> String {
    let (x, _) = site.begin_with(request);
    let hints = x
        .response
        .early_responses
        .as_ref()
        .and_then(|ahead| ahead.hints.front());
    hints.map_or(String::new(), |hints| {
        String::from_utf8_lossy(&hints.arena).replace('\r', "")
    })
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn locations_push_what_they_say() {
    let mut site = Site::server(
        "http2_push /all;
         location / { return 204; }
         location /two { http2_push /a; http2_push /b?$arg_x; return 204; }
         location /off { http2_push off; return 204; location /off/on { http2_push /in; return 204; } }
         location /var { http2_push $arg_push; return 204; }",
    );
    site.allow_push();
    assert_eq!(pushes(&mut site, "/"), ["/all"]);
    assert_eq!(pushes(&mut site, "/two?x=1"), ["/a", "/b?1"]);
    assert_eq!(pushes(&mut site, "/off"), [""; 0]);
    assert_eq!(pushes(&mut site, "/off/on"), ["/in"]);
    assert_eq!(pushes(&mut site, "/var?push=/x"), ["/x"]);
    assert_eq!(pushes(&mut site, "/var?push=off"), [""; 0]);
    assert_eq!(pushes(&mut site, "/var"), [""; 0]);
    let head = "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(pushes_of(&mut site, head), [""; 0]);
}

#[test]
fn nothing_is_decided_for_clients_that_take_no_pushes() {
    let mut site = Site::server("http2_push /all; location / { return 204; }");
    assert_eq!(pushes(&mut site, "/"), [""; 0]);
}

#[test]
fn relative_paths_are_logged_and_not_pushed() {
    let mut site = Site::server("location / { http2_push $arg_push; return 204; }");
    site.allow_push();
    let said = site.logged(|site| assert_eq!(pushes(site, "/?push=foo"), [""; 0]));
    assert!(said.contains("[warn]"), "{said}");
    assert!(
        said.contains("non-absolute path \"foo\" not pushed"),
        "{said}"
    );
}

#[test]
fn links_to_preload_are_pushed_where_that_is_on() {
    let mut site = Site::server(
        "add_header Link '</style.css>; rel=preload; as=style, </no.js>; rel=preload; nopush';
         add_header link '</script.js>; rel=\"x preload\"';
         http2_push /first;
         location / { return 200 ok; }
         location /on { http2_push_preload on; return 200 ok; }
         location /error { http2_push_preload on; return 404; }",
    );
    site.allow_push();
    assert_eq!(pushes(&mut site, "/"), ["/first"]);
    let all = ["/first", "/style.css", "/script.js"];
    assert_eq!(pushes(&mut site, "/on"), all);
    // add_header adds nothing to it.
    assert_eq!(pushes(&mut site, "/error"), ["/first"]);
}

#[test]
fn one_condition_of_early_hints_must_hold() {
    let mut site = Site::server(
        "early_hints_link '</style.css>; rel=preload; as=style';
         early_hints_link $arg_link;
         location / { empty_gif; }
         location /on { early_hints $arg_a $arg_b; empty_gif; }
         location /twice { early_hints $arg_a; early_hints $arg_b; empty_gif; }
         location /own { early_hints 1; early_hints_link '</own>; rel=preconnect'; empty_gif; }",
    );
    let style = "Link: </style.css>; rel=preload; as=style\n";
    for (target, expected) in [
        ("/?a=1", ""),
        ("/on", ""),
        ("/on?a=0", ""),
        ("/on?a=0&b=0", ""),
        ("/on?a=1", style),
        ("/on?a=0&b=00", style),
        ("/twice?b=x", style),
        ("/own", "Link: </own>; rel=preconnect\n"),
    ] {
        assert_eq!(hints(&mut site, &get(target)), expected, "{target}");
    }
    let both = format!("{style}Link: <x>\n");
    assert_eq!(hints(&mut site, &get("/on?a=1&link=<x>")), both);
}

#[test]
fn old_protocols_get_no_hints() {
    let mut site = Site::server("early_hints 1; early_hints_link <x>; location / { empty_gif; }");
    assert_eq!(hints(&mut site, &get("/")), "Link: <x>\n");
    assert_eq!(
        hints(&mut site, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"),
        ""
    );
}

#[test]
fn hints_are_decided_once_and_not_for_error_pages() {
    let mut site = Site::server(
        "early_hints 1; early_hints_link <$uri>; error_page 403 /error.html; index page;
         location /refused { return 403; }",
    )
    .file("/www/dir/page", "page")
    .file("/www/error.html", "error");
    // Early hints are final: the target of an internal redirect adds none.
    assert_eq!(hints(&mut site, &get("/dir/")), "Link: </dir/>\n");
    assert_eq!(
        hints(&mut site, &get("/error.html")),
        "Link: </error.html>\n"
    );
    assert_eq!(hints(&mut site, &get("/refused")), "");
}

#[test]
fn hints_hold_no_line_ends() {
    let mut site =
        Site::server("early_hints 1; early_hints_link <$uri>; location / { empty_gif; }");
    let said = hints(&mut site, &get("/a%0d%0aX-Evil:1"));
    assert_eq!(said, "Link: </a%0D%0AX-Evil:1>\n");
}

#[test]
fn links_without_conditions_are_warned_of() {
    let warning = "\"early_hints_link\" directive has no effect without \"early_hints\"";
    let warnings = |inner: &str| Site::warnings_with(inner, &[]).concat();
    let alone = warnings("early_hints_link <x>; server { }");
    assert!(alone.contains(warning), "{alone}");
    let elsewhere = "early_hints_link <x>; server { location /a { early_hints 1; } }";
    assert_eq!(warnings(elsewhere), "");
}
