//! Tests of the judge with planted faults.

use super::judge::{Origin, ReceivedResponse, judge};
use super::ledger::{Giving, Ledger, Moment, Policy, Purge, Version, etag};
use super::request::{Action, ClientRequest, Directive};

/// A version of 100 bytes, given at second 10 with `max-age=2`, and a request at second 11.
fn case() -> (Ledger, ClientRequest, ReceivedResponse) {
    let mut book = Ledger::default();
    for variant in [0, 1] {
        let version = Version {
            resource: 1,
            variant,
            len: 100,
            status: 200,
            has_etag: true,
            has_date: false,
        };
        book.versions.push(version);
    }
    book.givings.push(Giving {
        version: 1,
        request: 0,
        asked: moment(1, 10_000),
        given: Some(moment(2, 10_000)),
        read: Some(moment(3, 10_000)),
        policy: Policy {
            max_age_s: 2,
            ..Policy::default()
        },
        is_304: false,
        is_head: false,
        varies: true,
        is_tagged: true,
        fails: false,
    });
    let request = ClientRequest {
        id: 1,
        location: 0,
        resource: 1,
        variant: 1,
        action: Action::Get,
        directive: Directive::None,
        begun: moment(10, 11_000),
    };
    let got = ReceivedResponse {
        status: 200,
        fields: vec![field("X-Version", "1"), field("ETag", &etag(1))],
        body: book.versions[1].body(1),
        is_whole: true,
        head_ms: 11_999,
    };
    (book, request, got)
}

fn moment(order: u64, ms: u64) -> Moment {
    Moment { order, ms }
}

fn field(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns the verdict after a change of the case.
fn verdict(
    change: impl FnOnce(&mut Ledger, &mut ClientRequest, &mut ReceivedResponse),
) -> Result<Origin, String> {
    let (mut book, mut request, mut got) = case();
    change(&mut book, &mut request, &mut got);
    judge(&book, &request, &got)
}

fn purge(book: &mut Ledger, is_soft: bool, begun: u64) {
    book.purges.push(Purge {
        resources: vec![1],
        by_tag: true,
        is_soft,
        begun: moment(begun, 10_500),
        answered: moment(begun + 1, 10_500),
    });
}

#[test]
fn a_fresh_version_is_permitted_up_to_its_lifetime() {
    assert_eq!(verdict(|_, _, _| {}), Ok(Origin::Reused));
    assert!(verdict(|_, _, got| got.head_ms = 12_000).is_err());
    assert!(verdict(|book, _, _| book.givings[0].policy.no_cache = true).is_err());
    assert!(verdict(|book, _, _| book.givings[0].policy.no_store = true).is_err());
    assert!(verdict(|_, request, _| request.directive = Directive::NoCache).is_err());
    assert!(verdict(|_, request, _| request.directive = Directive::MaxAge(0)).is_err());
    let limited = |_: &mut Ledger, request: &mut ClientRequest, _: &mut ReceivedResponse| {
        request.directive = Directive::MaxAge(1);
    };
    assert_eq!(verdict(limited), Ok(Origin::Reused));
    let age = |text: &'static str| verdict(|_, _, got| got.fields.push(field("Age", text)));
    assert!(age("0").is_err() && age("1").is_ok());
}

#[test]
fn stale_versions_need_a_permission_of_their_seconds() {
    let late = |head_ms, change: fn(&mut Ledger, &mut ClientRequest)| {
        verdict(|book, request, got| {
            got.head_ms = head_ms;
            change(book, request);
        })
    };
    let stale = |book: &mut Ledger, _: &mut ClientRequest| {
        book.givings[0].policy.while_revalidate_s = Some(1);
    };
    assert_eq!(late(13_999, stale), Ok(Origin::Stale));
    assert!(late(14_000, stale).is_err());
    let asked = |_: &mut Ledger, request: &mut ClientRequest| {
        request.directive = Directive::MaxStale(1);
    };
    assert_eq!(late(13_999, asked), Ok(Origin::Stale));
    assert!(late(14_000, asked).is_err());
    let failed = |book: &mut Ledger, _: &mut ClientRequest| {
        book.givings[0].policy.if_error_s = Some(1);
        book.failures.push(moment(11, 11_000));
    };
    assert_eq!(late(13_999, failed), Ok(Origin::Stale));
    assert!(late(14_000, failed).is_err());
    let earlier = |book: &mut Ledger, _: &mut ClientRequest| {
        book.givings[0].policy.if_error_s = Some(1);
        book.failures.push(moment(9, 10_900));
    };
    assert!(late(13_999, earlier).is_err());
}

#[test]
fn a_version_from_before_a_purge_is_found() {
    assert!(verdict(|book, _, _| purge(book, false, 3)).is_err());
    assert!(verdict(|book, _, _| purge(book, true, 3)).is_err());
    // The server was asked after the purge.
    assert!(verdict(|book, _, _| purge(book, false, 0)).is_ok());
    // The request came before the answer.
    assert!(verdict(|book, _, _| purge(book, false, 10)).is_ok());
    let confirmed = verdict(|book, _, _| {
        purge(book, true, 3);
        let mut again = book.givings[0].clone();
        (again.asked, again.is_304, again.request) = (moment(11, 11_000), true, 1);
        book.givings.push(again);
    });
    assert_eq!(confirmed, Ok(Origin::Confirmed));
}

#[test]
fn another_version_or_a_mix_of_two_is_found() {
    assert!(verdict(|_, request, _| request.variant = 0).is_err());
    assert!(verdict(|_, request, _| request.resource = 0).is_err());
    assert!(verdict(|_, _, got| got.fields[0].1 = "0".to_owned()).is_err());
    assert!(verdict(|_, _, got| got.fields[0].1 = "7".to_owned()).is_err());
    assert!(verdict(|_, _, got| got.fields[1].1 = etag(0)).is_err());
    assert!(
        verdict(|book, _, got| got.body[50..].copy_from_slice(&book.versions[0].body(0)[50..]))
            .is_err()
    );
    assert!(verdict(|_, _, got| got.status = 500).is_err());
    assert!(verdict(|_, _, got| (got.status, got.fields) = (502, Vec::new())).is_err());
}

#[test]
fn a_short_or_long_body_is_found() {
    let cut = |is_whole, fails| {
        verdict(|book, _, got| {
            book.givings[0].fails = fails;
            got.body.truncate(99);
            got.is_whole = is_whole;
        })
    };
    assert!(cut(true, true).is_err());
    assert!(cut(false, false).is_err());
    assert!(cut(false, true).is_ok());
    assert!(verdict(|_, _, got| got.body.push(b'x')).is_err());
    assert!(verdict(|_, request, _| request.action = Action::Head).is_err());
    assert!(verdict(|_, _, got| got.fields.push(field("Content-Length", "99"))).is_err());
}

#[test]
fn a_wrong_range_is_found() {
    let range = |first, text: &'static str, body: std::ops::Range<usize>| {
        verdict(|_, request, got| {
            request.action = Action::Range(first, 29);
            got.status = 206;
            got.body = got.body[body].to_vec();
            got.fields.push(field("Content-Range", text));
        })
    };
    assert!(range(20, "bytes 20-29/100", 20..30).is_ok());
    assert!(range(20, "bytes 20-29/100", 21..31).is_err());
    assert!(range(20, "bytes 20-28/100", 20..29).is_err());
    assert!(range(19, "bytes 20-29/100", 20..30).is_err());
    assert!(verdict(|_, _, got| got.status = 206).is_err());
}
