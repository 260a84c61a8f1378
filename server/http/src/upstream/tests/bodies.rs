//! Request bodies on their way to servers.

use engines::http::BodyLength;

use super::Site;
use crate::exchange::State;
use crate::testing::servers::{ANNOUNCED, Passing, refused};
use crate::upstream::conf::NextUpstream;

const POST: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
const CHUNKED: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn announced() -> Vec<BodyLength> {
    ANNOUNCED.with_borrow_mut(std::mem::take)
}

#[test]
fn a_body_is_collected_first_and_sent_to_each_server() {
    for head in [POST, CHUNKED] {
        let mut passing = Passing::new();
        passing.servers = vec![1, 2];
        passing.conf.next_upstream = NextUpstream(NextUpstream::ERROR);
        let mut site = Site::new(passing);
        let mut x = site.run(head);
        x.deliver_body(b"ab".to_vec(), &mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(site.calls(), 0, "not all is there");
        x.deliver_body(b"c".to_vec(), &mut site.world.cx());
        x.end_body(&mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(announced(), [BodyLength::Length(3)]);
        assert_eq!(site.call().body(), ("abc".to_owned(), true));
        site.call().fail(refused());
        site.wake(&mut x);
        assert_eq!(site.calls(), 2);
        assert_eq!(site.call().body(), ("abc".to_owned(), true));
        assert_eq!(announced(), [], "the request is made once");
    }
}

#[test]
fn a_large_body_is_sent_from_its_file() {
    let mut site = Site::with(
        Passing::new(),
        "client_body_buffer_size 1; client_body_temp_path /t;",
    );
    let mut x = site.run(POST);
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(site.call().body(), ("[0+3]".to_owned(), true));
}

#[test]
fn a_body_that_is_not_passed_on_is_announced_as_none() {
    let mut passing = Passing::new();
    passing.conf.pass_request_body = false;
    let mut site = Site::new(passing);
    let mut x = site.run(POST);
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(announced(), [BodyLength::None]);
    assert_eq!(site.call().body(), (String::new(), false));
}

#[test]
fn a_request_without_a_body_waits_for_none() {
    let mut site = Site::new(Passing::new());
    let x = site.get("/up/a");
    assert!(matches!(x.state, State::Waiting(_)));
    assert_eq!((site.calls(), announced()), (1, vec![BodyLength::None]));
}
