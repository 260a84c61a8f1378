//! Lines of formats and of JSON, as records.

use std::net::IpAddr;

use super::*;

fn compiled(format: &str, client: &str) -> Result<LineFormat, String> {
    let format = Format::of_option(format).expect("it is a format");
    let client = Field::of_name(client).expect("it is a field");
    LineFormat::compile("own", &format, &client)
}

fn read(format: &str, line: &str) -> Result<Record, Fault> {
    compiled(format, "remote_addr")
        .expect("it has the client")
        .read(line.as_bytes())
}

fn record(ip: &str, sample: Sample) -> Result<Record, Fault> {
    let ip: IpAddr = ip.parse().expect("an address");
    let client = Client::Address(ip);
    Ok(Record {
        client,
        sample,
        is_numbered: false,
    })
}

const IP: &str = "192.0.2.1";

#[test]
fn the_minimum_is_preferred() {
    let time = Sample::Time(Rtt::Minimum, 50_000);
    let format = "$remote_addr $tcpinfo_rtt $tcpinfo_min_rtt";
    assert_eq!(read(format, "192.0.2.1 204000 50000"), record(IP, time));
    let time = Sample::Time(Rtt::Smoothed, 204_000);
    let format = "$remote_addr $tcpinfo_rtt";
    assert_eq!(read(format, "192.0.2.1 204000"), record(IP, time));
    let format = "$remote_addr $status";
    assert_eq!(read(format, "192.0.2.1 200"), record(IP, Sample::None));
}

#[test]
fn the_first_request_of_a_connection_is_a_sample() {
    for name in ["tcpinfo_min_rtt", "tcpinfo_rtt"] {
        let format = format!("$remote_addr ${name} $connection_requests");
        for (requests, is_sample) in [("1", true), ("2", false), ("10", false), ("-", false)] {
            let line = format!("192.0.2.1 500 {requests}");
            let read = read(&format, &line).expect("it is sound");
            assert_eq!(read.sample != Sample::None, is_sample, "{line}");
        }
    }
}

#[test]
fn absent_and_impossible_times_are_no_samples() {
    let format = "$remote_addr $tcpinfo_rtt";
    for (value, us) in [
        ("-", None),
        ("", None),
        ("0", None),
        ("1", Some(1)),
        ("4294967294", Some(u32::MAX - 1)),
        ("4294967295", None),
        ("99999999999999999999", None),
    ] {
        let expected = us.map_or(Sample::None, |us| Sample::Time(Rtt::Smoothed, us));
        assert_eq!(
            read(format, &format!("192.0.2.1 {value}")),
            record(IP, expected),
            "{value}"
        );
    }
    for value in ["1.5", "-1", "1-", "x"] {
        assert_eq!(
            read(format, &format!("192.0.2.1 {value}")),
            Err(Fault::Form)
        );
    }
}

#[test]
fn clients_that_are_no_address_are_faults() {
    let format = "$remote_addr $status";
    assert_eq!(read(format, "192.0.2.300 200"), Err(Fault::Client));
    assert_eq!(read(format, "192.0.2.1 -x"), Err(Fault::Form));
    let unknown = Record {
        client: Client::Unknown,
        sample: Sample::None,
        is_numbered: false,
    };
    assert_eq!(read(format, "unix: 200"), Ok(unknown));
}

#[test]
fn times_of_proxies_are_no_samples() {
    let format = "$remote_addr $realip_remote_addr $tcpinfo_rtt";
    let time = Sample::Time(Rtt::Smoothed, 500);
    for (line, sample) in [
        ("192.0.2.1 192.0.2.1 500", time),
        ("192.0.2.1 - 500", time),
        ("192.0.2.1 10.0.0.1 500", Sample::Proxied),
        ("192.0.2.1 10.0.0.1 -", Sample::None),
    ] {
        assert_eq!(read(format, line), record(IP, sample), "{line}");
    }
    let format = "$remote_addr \"$proxy_protocol_addr\" $tcpinfo_rtt";
    for (line, sample) in [
        ("192.0.2.1 \"\" 500", time),
        ("192.0.2.1 \"-\" 500", time),
        ("192.0.2.1 \"192.0.2.1\" 500", Sample::Proxied),
    ] {
        assert_eq!(read(format, line), record(IP, sample), "{line}");
    }
    let format = "$remote_addr $tcpinfo_rtt \"$http_x_forwarded_for\"";
    let forwarded = compiled(format, "${http_X_Forwarded_For}").expect("it has the field");
    let read = forwarded.read(b"10.0.0.1 500 \"8.8.8.8, 192.0.2.1\"");
    assert_eq!(read, record(IP, Sample::Proxied));
    // The peer of the connection is the client of its time.
    let format = "$remote_addr $realip_remote_addr $tcpinfo_rtt";
    let peer = compiled(format, "$realip_remote_addr").expect("it has the field");
    assert_eq!(peer.read(b"8.8.8.8 192.0.2.1 500"), record(IP, time));
}

#[test]
fn lines_of_json_are_read_by_names() {
    let json = LineFormat::json(&Field::default());
    let time = |kind| Sample::Time(kind, 500);
    for (line, sample) in [
        (
            r#"{"remote_addr":"192.0.2.1","tcpinfo_rtt":500}"#,
            time(Rtt::Smoothed),
        ),
        (
            r#"{"$tcpinfo_min_rtt": "500", "$remote_addr": "192.0.2.1"}"#,
            time(Rtt::Minimum),
        ),
        (
            r#"{"tcpinfo_min_rtt":500,"tcpinfo_rtt":9,"remote_addr":"192.0.2.1"}"#,
            time(Rtt::Minimum),
        ),
        (
            r#"{"tcpinfo_rtt":9,"tcpinfo_min_rtt":500,"remote_addr":"192.0.2.1","connection_requests":"1"}"#,
            time(Rtt::Minimum),
        ),
        (
            r#"{"remote_addr":"192.0.2.1","tcpinfo_rtt":500,"connection_requests":2}"#,
            Sample::None,
        ),
        (
            r#"{"remote_addr":"192.0.2.1","tcpinfo_rtt":500,"realip_remote_addr":"10.0.0.1"}"#,
            Sample::Proxied,
        ),
        (
            r#"{"remote_addr":"192.0.2.1","inner":{"tcpinfo_rtt":500}}"#,
            Sample::None,
        ),
    ] {
        let expected = record(IP, sample).map(|record| Record {
            is_numbered: line.contains("connection_requests"),
            ..record
        });
        assert_eq!(json.read(line.as_bytes()), expected, "{line}");
    }
    assert_eq!(json.read(b"{\"status\":200}"), Err(Fault::Form));
    assert_eq!(json.read(b"{\"remote_addr\":\"+\"}"), Err(Fault::Client));
}

#[test]
fn a_format_needs_the_client() {
    let why = compiled("$status $tcpinfo_rtt", "$remote_addr").expect_err("it has none");
    assert_eq!(
        why,
        "the format \"own\" has no $remote_addr; --client names the field of the client's address"
    );
}

#[test]
fn fields_are_names_of_variables() {
    for text in ["a", "$a", "${a}", "A"] {
        let field = Field::of_name(text).expect("it is one");
        assert_eq!(field.variable(), "$a");
    }
    for text in ["", "$", "${}", "a b", "$a$b", "{a", "a-b"] {
        assert!(Field::of_name(text).is_err(), "{text}");
    }
}
