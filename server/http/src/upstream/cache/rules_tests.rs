//! Tests of the rules of storing.

use super::*;
use crate::cache::conf::{
    CacheConditions, CacheLock, CacheMethods, CacheRules, CacheValid, StatusMatch, ZoneChoice,
};
use crate::upstream::conf::NextUpstream;
use crate::value::Value;

type Field = (&'static str, &'static str);

const NOW_S: i64 = 1_700_000_000;

fn conf(rfc: bool, valid: &[(u16, u32)]) -> CacheConf {
    let mut times = CacheValid::default();
    for (status, seconds) in valid {
        times.push(StatusMatch::Status(*status), *seconds);
    }
    CacheConf {
        zone: ZoneChoice::Computed(Value::default(), [].into_iter().collect()),
        key: None,
        has_method_in_key: false,
        is_key_of_uri: true,
        conditions: CacheConditions::default(),
        valid: times,
        min_uses: 1,
        max_range_offset: None,
        use_stale: NextUpstream::default(),
        methods: CacheMethods::default(),
        lock: CacheLock {
            is_on: false,
            timeout_ms: 5000,
            age_ms: 5000,
        },
        rules: CacheRules {
            rfc,
            revalidate: false,
            background_update: false,
            convert_head: true,
        },
        sends_status: false,
    }
}

fn head(status: u16, fields: &[Field]) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    for (name, value) in fields {
        head.push(name.as_bytes(), value.as_bytes());
    }
    head
}

fn stored(conf: &CacheConf, ignored: u32, head: &ResponseHead) -> Result<Storable, &'static str> {
    let request = RequestFacts {
        method: Method::Get,
        ..RequestFacts::default()
    };
    let received = Received {
        conf,
        ignored: IgnoredHeaders(ignored),
        request: &request,
        wants_part: false,
        request_s: NOW_S,
        now_s: NOW_S,
    };
    received.storable(head)
}

/// Seconds of freshness by nginx's rules, with `proxy_cache_valid 200 60`.
fn by_nginx(fields: &[Field]) -> Result<i64, &'static str> {
    let conf = conf(false, &[(200, 60)]);
    let stored = stored(&conf, 0, &head(200, fields))?;
    Ok(stored.times.valid_s - NOW_S)
}

#[test]
fn seconds_end_at_separators() {
    for (text, expected) in [
        (&b"10"[..], Some(10)),
        (b"10, x", Some(10)),
        (b"10;x", Some(10)),
        (b"10 x", Some(10)),
        (b"", Some(0)),
        (b"1x", None),
        (b"99999999999999999999999", Some(u64::MAX)),
    ] {
        assert_eq!(seconds(text), expected);
    }
}

/// nginx documentation, `proxy_cache_valid`: fields have a higher priority than the directive, X-Accel-Expires the highest.
#[test]
fn nginx_reads_the_fields_in_their_order() {
    for (fields, expected) in [
        (&[][..], Ok(60)),
        (&[("Cache-Control", "max-age=5")], Ok(5)),
        (&[("Cache-Control", "max-age=5, s-maxage=7")], Ok(7)),
        (&[("cache-control", "public, Max-Age=5")], Ok(5)),
        (&[("Cache-Control", "no-cache")], Err("no-store")),
        (&[("Cache-Control", "no-store")], Err("no-store")),
        (&[("Cache-Control", "private")], Err("no-store")),
        (&[("Cache-Control", "max-age=0")], Err("no-store")),
        (&[("Cache-Control", "max-age=x")], Err("invalid-max-age")),
        (&[("Expires", "Tue, 14 Nov 2023 22:13:30 GMT")], Ok(10)),
        (
            &[("Expires", "Tue, 14 Nov 2023 22:13:19 GMT")],
            Err("no-store"),
        ),
        (&[("Expires", "0")], Err("no-store")),
        (&[("X-Accel-Expires", "3")], Ok(3)),
        (&[("X-Accel-Expires", "0")], Err("x-accel-expires")),
        (&[("X-Accel-Expires", "@1700000009")], Ok(9)),
        (&[("X-Accel-Expires", "x")], Ok(60)),
    ] {
        assert_eq!(by_nginx(fields), expected, "{fields:?}");
    }
    for (fields, expected) in [
        ([("Expires", "0"), ("Cache-Control", "max-age=5")], Ok(5)),
        ([("Cache-Control", "max-age=5"), ("Expires", "0")], Ok(5)),
        (
            [("Cache-Control", "no-store"), ("X-Accel-Expires", "3")],
            Ok(3),
        ),
        (
            [("X-Accel-Expires", "3"), ("Cache-Control", "no-store")],
            Ok(3),
        ),
        ([("X-Accel-Expires", "3"), ("Expires", "0")], Ok(3)),
    ] {
        assert_eq!(by_nginx(&fields), expected, "{fields:?}");
    }
}

#[test]
fn nginx_stores_nothing_without_a_time() {
    let conf = conf(false, &[(200, 60)]);
    let stored = |status| stored(&conf, 0, &head(status, &[])).map(|one| one.times.valid_s);
    assert_eq!(stored(200), Ok(NOW_S + 60));
    assert_eq!(stored(404), Err("no-freshness"));
}

#[test]
fn nginx_takes_times_for_stale_responses() {
    let conf = conf(false, &[(200, 60)]);
    let times = |value| {
        let head = head(200, &[("Cache-Control", value)]);
        let times = stored(&conf, 0, &head).map(|one| one.times);
        times.map(|times| (times.updating_s, times.error_s))
    };
    assert_eq!(times("max-age=1, stale-while-revalidate=2"), Ok((2, 2)));
    assert_eq!(
        times("stale-while-revalidate=2, stale-if-error=3"),
        Ok((2, 3))
    );
    assert_eq!(times("stale-if-error=3"), Ok((0, 3)));
    assert_eq!(times("stale-if-error=x"), Err("invalid-stale-if-error"));
}

#[test]
fn cookies_and_vary_forbid_storing_unless_they_are_ignored() {
    for rfc in [false, true] {
        let conf = conf(rfc, &[(200, 60)]);
        for (field, bit) in [
            (("Set-Cookie", "a=b"), IgnoredHeaders::SET_COOKIE),
            (("Vary", "*"), IgnoredHeaders::VARY),
        ] {
            let head = head(200, &[field]);
            assert!(stored(&conf, 0, &head).is_err(), "{field:?} {rfc}");
            assert!(stored(&conf, bit, &head).is_ok(), "{field:?} {rfc}");
        }
    }
}

#[test]
fn a_long_vary_forbids_storing() {
    let conf = conf(false, &[(200, 60)]);
    for (len, expected) in [(127, true), (128, true), (129, false)] {
        let mut head = head(200, &[]);
        head.push(b"Vary", &vec![b'a'; len]);
        assert_eq!(stored(&conf, 0, &head).is_ok(), expected, "{len}");
    }
}

#[test]
fn fields_of_the_connection_are_not_stored() {
    let fields = [
        ("Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "timeout=1"),
        ("X-A", "1"),
        ("Date", "Tue, 14 Nov 2023 22:13:20 GMT"),
    ];
    for rfc in [false, true] {
        let conf = conf(rfc, &[(200, 60)]);
        let stored = stored(&conf, 0, &head(200, &fields)).expect("it may be stored");
        let names = stored
            .fields
            .fields
            .iter()
            .map(|f| stored.fields.bytes(f.name));
        assert_eq!(names.collect::<Vec<_>>(), [&b"X-A"[..], b"Date"]);
    }
}

/// RFC 9111 section 4.2.1; a response of nginx's rules without a time is stored by its validator.
#[test]
fn by_the_rfc_fields_come_before_the_directive() {
    let conf = conf(true, &[(200, 60)]);
    let seconds = |fields: &[Field]| {
        let stored = stored(&conf, 0, &head(200, fields))?;
        Ok::<_, &str>(stored.times.valid_s - NOW_S)
    };
    assert_eq!(seconds(&[]), Ok(60));
    assert_eq!(seconds(&[("Cache-Control", "max-age=5")]), Ok(5));
    assert_eq!(
        seconds(&[("Cache-Control", "max-age=5"), ("Age", "2")]),
        Ok(3)
    );
    assert_eq!(seconds(&[("Cache-Control", "private")]), Err("private"));
    let accel = [("Cache-Control", "max-age=5"), ("X-Accel-Expires", "9")];
    assert_eq!(seconds(&accel), Ok(9));
    let never = [("Cache-Control", "max-age=5"), ("X-Accel-Expires", "0")];
    assert_eq!(seconds(&never), Err("x-accel-expires"));
}

#[test]
fn too_many_tags_forbid_storing() {
    let conf = conf(false, &[(200, 60)]);
    for (count, expected) in [(63, true), (64, true), (65, false)] {
        let tags: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
        let mut head = head(200, &[]);
        head.push(b"Cache-Tag", tags.join(",").as_bytes());
        assert_eq!(stored(&conf, 0, &head).is_ok(), expected, "{count}");
    }
}
