//! Handshakes with a client of rustls: what is agreed on, and what is carried.

mod pair;

use pair::{Pair, Wishes, build, client_config, settings};

#[test]
fn records_in_one_read_are_all_taken_in_order() {
    let server = build(settings("localhost"));
    let client = client_config(Wishes::default());
    let mut pair = Pair::shake(&client, &server, "localhost").expect("they agree");
    assert!(pair.server.is_open());
    let mut bytes = pair.client_says(b"first ");
    bytes.extend(pair.client_says(b"second "));
    bytes.extend(pair.client_says(b"third"));
    let mut received = Vec::new();
    pair.server
        .receive(&mut bytes, &mut |plain| received.extend_from_slice(plain))
        .expect("the records are whole");
    assert_eq!(received, b"first second third");
    assert_eq!(pair.server_says(b"answer"), b"answer");
}
