//! Fields of lines by formats, and lines that do not fit.

use super::*;

fn slot(name: &str) -> Option<Slot> {
    match name {
        "remote_addr" => Some(Slot::Client),
        "tcpinfo_rtt" => Some(Slot::Rtt),
        "connection_requests" => Some(Slot::Requests),
        _ => None,
    }
}

fn pattern(format: &str) -> Pattern {
    let format = Format::of_option(format).expect("it is a format");
    Pattern::compile(&format, slot).expect("its fields are apart")
}

/// Client, round-trip time and number of requests in a line.
fn found(format: &str, line: &str) -> Option<[String; 3]> {
    let mut fields = Fields::default();
    let own = |place: &Option<Range<usize>>| {
        place
            .clone()
            .map_or(String::new(), |place| line[place].to_owned())
    };
    let is_found = pattern(format).find(line.as_bytes(), &mut fields);
    is_found.then(|| [own(&fields[0]), own(&fields[1]), own(&fields[2])])
}

fn fields(client: &str, rtt: &str, requests: &str) -> Option<[String; 3]> {
    Some([client.into(), rtt.into(), requests.into()])
}

const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
const LINE: &str =
    "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"a b\"";

#[test]
fn fields_of_nginx_formats_are_found() {
    assert_eq!(found(COMBINED, LINE), fields("192.0.2.1", "", ""));
    let with = |suffix: &str| COMBINED.to_owned() + suffix;
    let main = with(" \"$http_x_forwarded_for\"");
    let line = |suffix: &str| LINE.to_owned() + suffix;
    assert_eq!(found(&main, &line(" \"-\"")), fields("192.0.2.1", "", ""));
    let rtt = with(" $tcpinfo_rtt $connection_requests");
    assert_eq!(
        found(&rtt, &line(" 20000 1")),
        fields("192.0.2.1", "20000", "1")
    );
    assert_eq!(found(&rtt, &line(" - -")), fields("192.0.2.1", "-", "-"));
}

#[test]
fn lines_of_another_form_are_refused() {
    for line in [
        "",
        "192.0.2.1",
        "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"a b",
        "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" x 612 \"-\" \"a b\"",
        "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"a b\" 5",
    ] {
        assert_eq!(found(COMBINED, line), None, "{line}");
    }
}

#[test]
fn users_with_brackets_and_spaces_move_nothing() {
    let line = LINE.replace("- - [", "- a [b] c [");
    assert_eq!(found(COMBINED, &line), fields("192.0.2.1", "", ""));
}

#[test]
fn a_client_cannot_forge_later_fields() {
    // Nothing quotes the user agent.
    let format = "$remote_addr $http_user_agent $tcpinfo_rtt $connection_requests";
    for agent in ["x", "x 5 1", "x 5 1 ", "5", "", " 7 7 7"] {
        let line = format!("192.0.2.1 {agent} 20000 1");
        assert_eq!(
            found(format, &line),
            fields("192.0.2.1", "20000", "1"),
            "{agent:?}"
        );
    }
    let format = "escape=none $remote_addr \"$http_user_agent\" $tcpinfo_rtt";
    for agent in ["x\" 5", "\"", "\" 5 \" 6\" 7", "\\\""] {
        let line = format!("192.0.2.1 \"{agent}\" 20000");
        assert_eq!(
            found(format, &line),
            fields("192.0.2.1", "20000", ""),
            "{agent:?}"
        );
    }
}

#[test]
fn json_values_end_at_quotes_without_backslash() {
    let format =
        "escape=json {\"a\":\"$remote_addr\",\"ua\":\"$http_user_agent\",\"rtt\":$tcpinfo_rtt}";
    for agent in [
        "",
        "x",
        r#"\",\"rtt\":5}"#,
        r"\\",
        r#"\\\""#,
        "\\u0001",
        "\u{e9}",
    ] {
        let line = format!("{{\"a\":\"2001:db8::1\",\"ua\":\"{agent}\",\"rtt\":20000}}");
        assert_eq!(
            found(format, &line),
            fields("2001:db8::1", "20000", ""),
            "{agent}"
        );
    }
    let empty = "{\"a\":\"\",\"ua\":\"\",\"rtt\":}";
    assert_eq!(found(format, empty), fields("", "", ""));
    let open = "{\"a\":\"\",\"ua\":\"\\\",\"rtt\":5}";
    assert_eq!(found(format, open), None);
}

#[test]
fn separators_of_any_kind_end_fields() {
    for separator in ["\t", ",", ";", "|", " ", " | ", "::::x"] {
        let format = ["$time_iso8601", "$remote_addr", "$tcpinfo_rtt", "$uri"].join(separator);
        let line = ["2026-11-29T11:00:00+00:00", "192.0.2.1", "7", "/a,b;c d"].join(separator);
        assert_eq!(
            found(&format, &line),
            fields("192.0.2.1", "7", ""),
            "{separator}"
        );
    }
}

#[test]
fn neighbours_of_a_field_need_a_separator() {
    let refused = |format: &str| {
        let format = Format::of_option(format).expect("it is a format");
        Pattern::compile(&format, slot).expect_err("they are not apart")
    };
    let why = "\"$remote_addr\" and \"$uri\" follow each other without a separator";
    assert_eq!(refused("$remote_addr$uri $status"), why);
    let why = "\"$status\" and \"$tcpinfo_rtt\" follow each other without a separator";
    assert_eq!(refused("$remote_addr ${status}$tcpinfo_rtt"), why);
    // Fields that are not read may touch.
    let format = "$remote_addr $scheme$host$uri $tcpinfo_rtt";
    assert_eq!(
        found(format, "192.0.2.1 httphost/a b 5"),
        fields("192.0.2.1", "5", "")
    );
}

#[test]
fn repeated_variables_are_read_once() {
    let found = found("$remote_addr $tcpinfo_rtt $tcpinfo_rtt", "192.0.2.1 5 6");
    assert_eq!(found, fields("192.0.2.1", "5", ""));
}

#[test]
fn attempts_have_a_limit() {
    let format = "$remote_addr $uri,$args,$tcpinfo_rtt";
    // Each comma is an attempt of `$uri`; the last `x` is no number.
    let line = |commas: u32, end: &str| format!("192.0.2.1 {}{end}", ",".repeat(commas as usize));
    let mut fields = Fields::default();
    let pattern = pattern(format);
    assert!(pattern.find(line(200, "5").as_bytes(), &mut fields));
    let (mut attempts, long) = (ATTEMPTS_MAX, line(20_000, "x"));
    let begin = (0, 0);
    let ended = pattern.find_from(long.as_bytes(), begin, &mut fields, &mut attempts);
    assert_eq!((ended, attempts), (None, 0));
    // One pair of free values: n ends of the first and n + ... + 1 of the second.
    for (most, expected) in [(5, None), (6, Some(false)), (7, Some(false))] {
        let mut attempts = most;
        let line = line(3, "x");
        let ended = pattern.find_from(line.as_bytes(), begin, &mut fields, &mut attempts);
        assert_eq!(ended, expected, "{most}");
    }
}
