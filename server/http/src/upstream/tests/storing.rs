//! Responses that are kept as files.

use server_base::files::{EACCES, ENOENT, EXDEV, FileError};
use server_upstream::request::Failure;

use super::Site;
use crate::detached::{Discarded, end, turn};
use crate::exchange::{DetachedEnd, DetachedRequest, Exchange, Rest};
use crate::testing::get;
use crate::testing::servers::Passing;
use crate::upstream::conf::StorePath;
use crate::value::Value;

fn site() -> Site {
    let mut passing = Passing::new();
    passing.conf.store.path = Some(StorePath::Value(Value::text(b"/store/a/b")));
    passing.conf.store.access = 0o644;
    Site::new(passing)
}

/// A request that is answered so.
fn answered(site: &mut Site, head: &str, status: u16, fields: &[&str]) -> Exchange {
    let mut x = site.run(head);
    site.call().head(status, fields).data("abc").end();
    site.wake(&mut x);
    x
}

fn changes(site: &mut Site) -> Vec<String> {
    std::mem::take(&mut site.world.files.changes)
}

#[test]
fn a_whole_response_gets_its_name_mode_and_time() {
    let mut site = site();
    let time = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let mut x = answered(&mut site, &get("/up/a"), 200, &[time, "Content-Length: 3"]);
    assert_eq!(site.pull(&mut x), ("abc".to_owned(), "end"));
    assert_eq!(
        changes(&mut site),
        [
            "/temp/1 644",
            "/temp/1 at 784111777",
            "/temp/1 -> /store/a/b"
        ]
    );
}

#[test]
fn it_is_stored_whatever_the_client_takes() {
    let mut site = site();
    let mut x = site.get("/up/a");
    site.call().head(200, &[]);
    site.wake(&mut x);
    site.call().data("abc");
    site.wake(&mut x);
    assert_eq!(changes(&mut site), [""; 0]);
    site.call().end();
    site.wake(&mut x);
    assert_eq!(changes(&mut site).len(), 2);
}

#[test]
fn what_is_no_whole_file_is_not_stored() {
    let head = "HEAD /up/a HTTP/1.1\r\nHost: a\r\n\r\n";
    for (request, status, fields) in [
        (&*get("/up/a"), 404, &[][..]),
        (&*get("/up/a"), 200, &["Content-Length: 4"][..]),
        (head, 200, &[][..]),
    ] {
        let mut site = site();
        answered(&mut site, request, status, fields);
        assert_eq!(changes(&mut site), [""; 0]);
    }
    let mut site = site();
    let mut x = site.get("/up/a");
    site.call().head(200, &[]).data("ab");
    site.call().fail(Failure::Closed);
    site.wake(&mut x);
    assert_eq!(changes(&mut site), [""; 0]);
}

#[test]
fn directories_are_made_and_other_file_systems_reached() {
    let error = |errno| {
        Err(FileError {
            errno,
            call: "rename()",
        })
    };
    let mut site = site();
    site.world.files.outcomes = [Ok(()), error(ENOENT)].into();
    answered(&mut site, &get("/up/a"), 200, &[]);
    assert_eq!(
        changes(&mut site)[2..],
        ["/store/ 755", "/store/a/ 755", "/temp/1 -> /store/a/b"]
    );
    site.world.files.outcomes = [Ok(()), error(EXDEV)].into();
    answered(&mut site, &get("/up/a"), 200, &[]);
    assert_eq!(changes(&mut site)[2..], ["/temp/1 => /store/a/b"]);
    site.world.files.outcomes = [Ok(()), error(EACCES)].into();
    let mut x = answered(&mut site, &get("/up/a"), 200, &[]);
    assert_eq!(site.pull(&mut x).0, "abc", "the client notices nothing");
    let said = site.world.said();
    assert!(
        said.contains("[crit]") && said.contains("rename() \"/temp/1\" failed (13: Permission"),
        "{said}"
    );
}

#[test]
fn a_full_disk_costs_the_file_alone() {
    let mut site = site();
    site.world.files.is_full = true;
    let mut x = answered(&mut site, &get("/up/a"), 200, &[]);
    assert_eq!(site.pull(&mut x), ("abc".to_owned(), "end"));
    assert_eq!(changes(&mut site), [""; 0]);
    assert!(site.world.said().contains("No space left on device"));
}

/// The response of a mirror is read to its limits, unless it is stored.
#[test]
fn a_stored_response_of_a_detached_request_is_read_to_its_end() {
    let mut site = site();
    let x = site.get("/up/a");
    let request = DetachedRequest::child_of(&x, &site.world.cx(), b"/up/b", b"");
    let mut request = request.expect("it is the first").head_only();
    assert_eq!(turn(&mut request, &mut site.world.cx()), Discarded::Pending);
    site.call().head(200, &[]);
    let piece = vec![b'x'; Rest::UNUSED.bytes as usize];
    for _ in 0..2 {
        site.call().bytes(piece.clone());
        assert_eq!(turn(&mut request, &mut site.world.cx()), Discarded::Pending);
    }
    assert_eq!(request.until_ms, u64::MAX, "it may take its time");
    site.call().data("abc").end();
    let done = Discarded::Ended(DetachedEnd::Complete);
    assert_eq!(turn(&mut request, &mut site.world.cx()), done);
    end(&mut request, &mut site.world.cx(), DetachedEnd::Complete);
    assert_eq!(
        changes(&mut site).last().map(String::as_str),
        Some("/temp/1 -> /store/a/b")
    );
}

/// A file that cannot be written is no reason to read the rest.
#[test]
fn a_detached_request_has_its_limits_once_its_file_has_failed() {
    let mut site = site();
    site.world.files.is_full = true;
    let x = site.get("/up/a");
    let request = DetachedRequest::child_of(&x, &site.world.cx(), b"/up/b", b"");
    let mut request = request.expect("it is the first").head_only();
    turn(&mut request, &mut site.world.cx());
    let piece = vec![b'x'; Rest::UNUSED.bytes as usize];
    site.call().head(200, &[]).bytes(piece).data("x");
    let done = Discarded::Ended(DetachedEnd::Complete);
    assert_eq!(turn(&mut request, &mut site.world.cx()), done);
    drop(request);
    assert!(site.call().is_given_up());
}
