//! State of a connection after a response, or instead of one.

use super::*;

#[test]
fn connections_are_kept_as_both_sides_say() {
    let kept = |http10: bool, request: &[(&str, &str)], response: &str| {
        let options = RequestOptions {
            http10,
            ..RequestOptions::default()
        };
        let mut client = asked_with("GET", request, options);
        client.receive(response.as_bytes());
        events(&mut client);
        assert_eq!(client.is_reusable(), !client.is_closed());
        client.is_reusable()
    };
    let (close, keep) = (("Connection", "a, CLOSE"), ("Connection", "keep-alive"));
    let new = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    let says = |head: &str, option: &str| {
        head.replace("OK\r\n", &format!("OK\r\nConnection: {option}\r\n"))
    };
    assert!(kept(false, &[], new));
    assert!(!kept(false, &[close], new));
    assert!(!kept(false, &[keep, close], new));
    assert!(!kept(false, &[], &says(new, "a, close")));
    assert!(!kept(false, &[], old));
    assert!(kept(false, &[], &says(old, "Keep-Alive")));
    assert!(!kept(true, &[], new));
    assert!(kept(true, &[keep], new));
    assert!(!kept(true, &[keep], old));
    assert!(kept(true, &[keep], &says(old, "keep-alive")));
    assert!(!kept(true, &[keep, close], &says(old, "keep-alive")));
}

#[test]
fn early_response_leaves_the_connection_useless_until_the_request_is_whole() {
    let chunked = [("Transfer-Encoding", "chunked")];
    let mut client = asked_with("POST", &chunked, body(BodyLength::Unknown));
    client.receive(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(events(&mut client), ["413 Content-Length=0", "end 0"]);
    let again = |client: &mut Client| client.request(fields("GET", &[]), RequestOptions::default());
    assert_eq!(again(&mut client), Err(SendError::Busy));
    client.end(None);
    assert!(!client.is_reusable(), "the end is not transmitted");
    assert_eq!(again(&mut client), Err(SendError::Busy));
    assert_eq!(text(&mut client), "0\r\n\r\n");
    assert!(client.is_reusable());
    assert_eq!(again(&mut client), Ok(2));
    assert_eq!(again(&mut client), Err(SendError::Busy));
}

#[test]
fn bytes_out_and_in_are_told_of_each_request() {
    let mut client = Client::new(Bodies::Delivered);
    for round in 1..=2 {
        let length = [("Content-Length", "3")];
        let result = client.request(fields("PUT", &length), body(BodyLength::Length(3)));
        assert_eq!(result, Ok(round));
        assert_eq!((client.sent_bytes(), client.has_answer()), (0, false));
        let head = text(&mut client).len() as u64;
        assert_eq!(client.sent_bytes(), head);
        client.send(Chunk::Static(b"abc"));
        assert_eq!(client.sent_bytes(), head);
        text(&mut client);
        assert_eq!(client.sent_bytes(), head + 3);
        client.receive(b"");
        client.receive_buffer(&mut Vec::new());
        assert!(!client.has_answer());
        client.receive(b"H");
        assert!(client.has_answer());
        client.receive(b"TTP/1.1 204\r\n\r\n");
    }
}

#[test]
fn exchange_given_up_inside_of_a_head_holds_nothing_back() {
    let mut client = asked("GET");
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Le");
    client.cancel();
    assert!(client.is_closed() && !client.is_reusable());
    client.receive(b"ngth: 3\r\n\r\nabc");
    assert_eq!(events(&mut client), Vec::<String>::new());
    let again = client.request(fields("GET", &[]), RequestOptions::default());
    assert_eq!(again, Err(SendError::Closed));
}

#[test]
fn reset_makes_a_new_connection_of_any_other() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (answer, ends) in [
        ("", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX", false),
        (&format!("{chunked}3\r\na"), false),
        (&format!("{chunked}0\r\n\r\n"), false),
        ("HTTP/1.1 200 OK\r\n\r\nabc", true),
        ("rubbish", true),
        ("HTTP/1.1 101 Switching\r\n\r\nabc", false),
    ] {
        let mut client = asked_with("GET", &[("Content-Length", "3")], upgrade());
        client.send(Chunk::Static(b"ab"));
        client.receive(answer.as_bytes());
        if ends {
            client.receive_eof(true);
        }
        client.reset();
        assert!(
            client.is_reusable() && client.event().is_none(),
            "{answer:?}"
        );
        assert!(!client.has_answer() && client.sent_bytes() == 0);
        let result = client.request(fields("GET", &[]), RequestOptions::default());
        assert_eq!(result, Ok(1));
        assert_eq!(text(&mut client), "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        assert_eq!(events(&mut client), ["200 Content-Length=1", "+x", "end 1"]);
        client.reset();
        client.receive(b"x");
        assert_eq!(events(&mut client), ["Unasked"]);
    }
}
