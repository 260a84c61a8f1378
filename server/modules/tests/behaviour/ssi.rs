//! Commands in pages (`ssi`), one page for each question.

use server_http::exchange::{MAX_SUBREQUESTS, Pulled};

use crate::site::Site;

/// A site that runs the commands of its pages.
fn site(inner: &str, pages: &[(&str, &str)]) -> Site {
    let mut site = Site::server(&format!(
        "types {{ text/html html; }} ssi on;
         location = /word {{ return 200 word; }}
         location = /args {{ return 200 [$args]; }}
         location = /missing {{ return 404; }}
         location = /empty {{ return 200; }}
         {inner}"
    ));
    for (name, text) in pages {
        site = site.file(&format!("/www/{name}"), text);
    }
    site
}

/// The output for a page.
fn page(text: &str) -> String {
    page_with(text, "")
}

fn page_with(text: &str, args: &str) -> String {
    site("", &[("page.html", text)])
        .get(&format!("/page.html?{args}"))
        .body
}

#[test]
fn variables_are_shown_and_encoded() {
    assert_eq!(page_with("x<!--#echo var='arg_a' -->x", "a=1"), "x1x");
    assert_eq!(page("x<!--#echo var='arg_a' -->x"), "x(none)x");
    assert_eq!(page("x<!--#echo var='arg_a' default='d' -->x"), "xdx");
    assert_eq!(page("x<!--#echo var='arg_a' default='' -->x"), "xx");
    assert_eq!(page_with("x<!--#echo var='arg_a' -->x", "a="), "xx");
    let show = |encoding: &str| {
        page(&format!(
            "<!--#set var='v' value='<a&\\\" >' --><!--#echo var='v' {encoding} -->"
        ))
    };
    assert_eq!(show(""), "&lt;a&amp;&quot; &gt;");
    assert_eq!(show("encoding='none'"), "<a&\" >");
    assert_eq!(show("encoding='url'"), "%3Ca&%22%20%3E");
    let kept =
        "<!--#set var='v' value='<' --><!--#echo var='v' encoding='none' --><!--#echo var='v' -->";
    assert_eq!(page(kept), "<<", "the encoding stays");
}

#[test]
fn values_hold_variables_and_backslashes() {
    let set = |value: &str| {
        let text =
            format!("<!--#set var='v' value=\"{value}\" --><!--#echo var='v' encoding='none' -->");
        page_with(&text, "a=1")
    };
    assert_eq!(set("$arg_a-${arg_a}b-$nothing-"), "1-1b--");
    assert_eq!(set("\\$arg_a \\\\ \\\" \\x"), "$arg_a \\ \" \\x");
    assert_eq!(
        set("a$"),
        "[an error occurred while processing the directive](none)"
    );
    assert_eq!(
        set("${a"),
        "[an error occurred while processing the directive](none)"
    );
}

#[test]
fn conditions_choose_what_is_put_out() {
    let chosen = |args: &str| {
        page_with(
            "x<!--#if expr='$arg_a' -->A<!--#elif expr='$arg_b = two' -->B<!--#elif expr='$arg_b != \"\"' -->C<!--#else -->D<!--#endif -->x",
            args,
        )
    };
    assert_eq!(chosen("a=1&b=two"), "xAx");
    assert_eq!(chosen("b=two"), "xBx");
    assert_eq!(chosen("b=three"), "xCx");
    let holds = |expr: &str| {
        page_with(
            &format!("<!--#if expr=\"{expr}\" -->yes<!--#else -->no<!--#endif -->"),
            "a=Abc",
        )
    };
    assert_eq!(holds("$arg_a=Abc"), "yes");
    assert_eq!(holds("$arg_a   =   abc"), "no");
    assert_eq!(holds("$arg_a = /^A(.)/"), "yes");
    assert_eq!(holds("$arg_a != /x/"), "yes");
    assert_eq!(holds("$arg_a = \\/"), "no");
    assert_eq!(holds("text"), "yes");
    let error = "[an error occurred while processing the directive]";
    assert!(holds("$arg_a = /x").starts_with(error));
    assert!(holds("$arg_a < 1").starts_with(error));
    assert!(holds("$arg_a = /(/").starts_with(error));
}

#[test]
fn groups_of_a_pattern_are_variables() {
    let text = "<!--#if expr='$arg_a = /(b)(?<n>c)/' --><!--#echo var='0' -->,<!--#echo var='1' -->,<!--#echo var='n' -->,<!--#echo var='3' --><!--#endif -->";
    assert_eq!(page_with(text, "a=abc"), "bc,b,c,(none)");
}

#[test]
fn what_is_not_chosen_is_not_done() {
    assert_eq!(
        page(
            "<!--#if expr='' --><!--#set var='v' value='1' --><!--#no --><!--#endif --><!--#echo var='v' -->"
        ),
        "(none)"
    );
    assert_eq!(
        page("<!--#if expr='' -->a<!--#endblock -->b<!--#endif -->c"),
        "c"
    );
}

#[test]
fn a_command_that_cannot_be_done_says_so() {
    let error = "[an error occurred while processing the directive]";
    for text in [
        "<!--#nothing -->",
        "<!--#echo -->",
        "<!--#echo var='a' var='b' -->",
        "<!--#echo what='a' -->",
        "<!--#else -->",
        "<!--#endif -->",
        "<!--#include -->",
        "<!--#include virtual='/a' file='b' -->",
        "<!--#include file='b' wait='yes' -->",
        "<!--#include virtual='/word' wait='maybe' -->",
        "<!--#include virtual='/../word' -->",
        "<!--#include virtual='/%2e%2e/word' -->",
        "<!--#include virtual='' -->",
        "<!--#include virtual='/word' stub='none' -->",
        "<!--#include virtual='/word' stub='none' set='v' -->",
        "<!--#echo var=a -->",
    ] {
        assert_eq!(page(&format!("a{text}b")), format!("a{error}b"), "{text}");
    }
    assert_eq!(page("<!--#config errmsg='oh' --><!--#nothing -->"), "oh");
    let mut silent = site(
        "ssi_silent_errors on;",
        &[("page.html", "a<!--#nothing -->b")],
    );
    assert_eq!(silent.get("/page.html").body, "ab");
    let mut logging = site("", &[("page.html", "<!--#nothing --><!--#x y -->")]);
    let said = logging.logged(|site| {
        site.get("/page.html");
    });
    assert!(said.contains("invalid SSI command: \"nothing\""), "{said}");
    assert!(
        said.contains("unexpected \"-\" symbol after \"y\" parameter in \"x\" SSI command"),
        "{said}"
    );
}

#[test]
fn an_if_inside_of_an_if_is_an_error() {
    let text = "<!--#if expr='a' --><!--#if expr='b' -->x<!--#endif -->y<!--#endif -->";
    assert!(page(text).starts_with("[an error occurred"));
}

#[test]
fn pages_include_others() {
    let mut site = site(
        "",
        &[
            (
                "page.html",
                "a<!--#include virtual='/word' -->b<!--#include virtual='inner/one.html?x=$arg_y' -->c",
            ),
            (
                "inner/one.html",
                "(<!--#include virtual='two.html' --><!--#echo var='arg_x' -->)",
            ),
            ("inner/two.html", "<!--#include file='/args' -->"),
        ],
    );
    assert_eq!(site.get("/page.html?y=1").body, "awordb([]1)c");
}

#[test]
fn an_error_is_included_unless_there_is_a_stub() {
    assert!(page("<!--#include virtual='/missing' -->").contains("404 Not Found"));
    let stub = "<!--#block name='s' -->S<!--#echo var='arg_q' -->\
                <!--#if expr='$arg_q' -->!<!--#endif --><!--#endblock -->";
    let with = |uri: &str| {
        page(&format!(
            "{stub}x<!--#include virtual='{uri}' stub='s' -->x"
        ))
    };
    assert_eq!(
        with("/missing?q=1"),
        "xS1!x",
        "the stub is read as a page of the subrequest's"
    );
    assert_eq!(with("/missing"), "xS(none)x");
    assert_eq!(with("/empty"), "xS(none)x");
    assert_eq!(with("/word"), "xwordx");
    let empty =
        "<!--#block name='e' --><!--#endblock --><!--#include virtual='/missing' stub='e' -->.";
    assert_eq!(page(empty), ".");
}

#[test]
fn a_body_can_be_held_in_a_variable() {
    assert_eq!(
        page("<!--#include virtual='/word' set='v' -->x<!--#echo var='v' -->"),
        "xword"
    );
    assert_eq!(
        page("<!--#include virtual='/missing' set='v' -->x<!--#echo var='v' -->x"),
        "xx"
    );
    let set = "<!--#include virtual='/word' -->,<!--#include virtual='/word' set='v' --><!--#if expr='$v = word' -->held<!--#endif -->";
    assert_eq!(page(set), "word,held");
}

#[test]
fn a_body_that_is_held_is_bounded() {
    let held = |bytes: usize| {
        let body = "v".repeat(bytes);
        let mut site = site(
            "subrequest_output_buffer_size 10;",
            &[
                (
                    "page.html",
                    "<!--#include virtual='/held' set='v' --><!--#echo var='v' -->",
                ),
                ("held", &body),
            ],
        );
        let mut x = site.begin("/page.html");
        matches!(site.pull(&mut x), Pulled::Chunk(_))
    };
    assert!(held(10));
    assert!(!held(11));
}

#[test]
fn variables_belong_to_the_client_s_request() {
    let mut site = site(
        "",
        &[
            (
                "page.html",
                "<!--#set var='v' value='1' --><!--#include file='inner.html' --><!--#echo var='v' -->",
            ),
            (
                "inner.html",
                "<!--#echo var='v' --><!--#set var='v' value='2' -->",
            ),
        ],
    );
    assert_eq!(site.get("/page.html").body, "12");
}

#[test]
fn the_number_of_subrequests_is_bounded() {
    let include = "<!--#include virtual='/empty' -->";
    let text = include.repeat(MAX_SUBREQUESTS as usize + 1);
    let mut site = site("", &[("page.html", &text)]);
    let said = site.logged(|site| {
        let error = "[an error occurred while processing the directive]";
        assert_eq!(site.get("/page.html").body, error, "the last one alone");
    });
    let text = "request reference counter overflow while processing \"/empty\"";
    assert!(said.contains(text), "{said}");
}

#[test]
fn a_text_with_the_values_of_its_variables_is_bounded() {
    let set = |bytes: usize| {
        let value = "v".repeat(bytes);
        let text =
            format!("<!--#set var='v' value='{value}' --><!--#if expr='$v' -->set<!--#endif -->");
        site("ssi_value_length 100k;", &[("page.html", &text)])
            .get("/page.html")
            .body
    };
    assert_eq!(set(64 << 10), "set");
    assert_eq!(
        set((64 << 10) + 1),
        "[an error occurred while processing the directive]"
    );
}

#[test]
fn dates_are_written_as_the_page_says() {
    assert_eq!(
        page("<!--#echo var='date_gmt' -->"),
        "Sunday, 06-Nov-1994 08:51:17 GMT"
    );
    assert_eq!(
        page("<!--#config timefmt='%Y %s' --><!--#echo var='date_gmt' -->"),
        "1994 784111877"
    );
    assert_eq!(
        page("<!--#config timefmt='%s' --><!--#echo var='date_local' -->"),
        "784111877"
    );
    let mut site = site(
        "location = /date { default_type text/plain; return 200 $date_gmt; }",
        &[(
            "page.html",
            "<!--#config timefmt='%Y' --><!--#include virtual='/date' -->",
        )],
    );
    assert_eq!(
        site.get("/page.html").body,
        "Sunday, 06-Nov-1994 08:51:17 GMT",
        "another's page"
    );
}

#[test]
fn a_page_with_commands_has_no_length_no_validators_and_no_ranges() {
    let text = "<!--#echo var='arg_a' -->";
    let mut plain = site(
        "location /kept/ { alias /www/; ssi_last_modified on; }",
        &[("page.html", text), ("page.txt", text), ("empty.html", "")],
    );
    let page = plain.get_with("/page.html", "Range: bytes=0-1\r\n");
    assert_eq!((page.status, page.body.as_str()), (200, "(none)"));
    for field in ["Content-Length", "Last-Modified", "ETag", "Accept-Ranges"] {
        assert_eq!(page.field(field), "", "{field}");
    }
    let kept = plain.get("/kept/page.html");
    assert_eq!(kept.field("Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert!(kept.field("ETag").starts_with("W/\""));
    assert_eq!(plain.get("/page.txt").body, text, "of another type");
    assert_eq!(plain.get("/empty.html").field("Content-Length"), "0");
    let head = plain.send("HEAD /page.html HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.body.as_str(), head.field("Content-Length")), ("", ""));
}

#[test]
fn a_page_that_includes_itself_ends_with_an_error() {
    let mut site = site(
        "",
        &[("page.html", "x<!--#include virtual='/page.html' -->")],
    );
    let said = site.logged(|site| {
        let body = site.get("/page.html").body;
        let error = "[an error occurred while processing the directive]";
        assert_eq!(body, format!("{}{error}", "x".repeat(52)));
    });
    assert!(
        said.contains("subrequests cycle while processing \"/page.html\""),
        "{said}"
    );
    assert!(said.contains("subrequest: \"/page.html\""), "{said}");
}

#[test]
fn limits_count_a_client_s_request_once_with_its_subrequests() {
    let mut site = Site::http(
        "limit_req_zone $uri zone=ssi_waits:1m rate=1r/s;
         server { root /www; ssi on; types { text/html html; }
           location = /a { limit_req zone=ssi_waits burst=9; alias /www/a; }
           location = /b { limit_req zone=ssi_waits burst=9; alias /www/b; } }",
    )
    .file("/www/a", "A")
    .file("/www/b", "B")
    .file(
        "/www/page.html",
        "1<!--#include virtual='/a' -->2<!--#include virtual='/b' -->3",
    );
    let first = site.get("/page.html");
    assert_eq!((first.body.as_str(), first.waited_ms), ("1A2B3", 0));
    // As in nginx: the first subrequest was counted, the second one is admitted.
    let second = site.get("/page.html");
    assert_eq!(second.body, "1A2B3");
    assert_eq!(second.waited_ms, 1000);
}

#[test]
fn the_same_page_cut_anywhere_is_the_same() {
    let text = "a<!--#set var='v' value='x' -->b<!--<!--#echo var='v' -->c<!--#include virtual='/word' -->d<!--";
    let expected = "ab<!--xcwordd<!--";
    assert_eq!(page(text), expected);
    for at in 0..text.len() {
        let mut site = site("", &[("page.html", text)]);
        let mut x = site.begin("/page.html");
        x.body.chunks.clear();
        let (front, rest) = text.as_bytes().split_at(at);
        for piece in [front, rest] {
            x.body
                .chunks
                .push_back(engines::http::Chunk::Owned(piece.to_vec()));
        }
        let mut got = Vec::new();
        while let Pulled::Chunk(chunk) = site.pull(&mut x) {
            got.extend_from_slice(chunk.bytes());
        }
        assert_eq!(String::from_utf8_lossy(&got), expected, "cut at {at}");
    }
}
