//! Contents of connections of TLS, opened with the keys that a client has written.

use super::*;

#[test]
fn lines_that_are_no_keys_are_left_out() {
    let random = "ab".repeat(32);
    let text = format!(
        "# a comment\n\nCLIENT_RANDOM {random} 0102\nCLIENT_RANDOM {random}\nCLIENT_RANDOM xy 01\nOTHER {random} 03\nSERVER_TRAFFIC_SECRET_0 {random} 04\n"
    );
    let log = KeyLog::read(text.as_bytes()).expect("there are keys");
    let secrets = log.secrets(&[0xab; 32]).expect("it is there");
    assert_eq!(
        (secrets.master.as_slice(), secrets.traffic[1].as_slice()),
        (&[1, 2][..], &[4][..])
    );
    assert!(log.secrets(&[0; 32]).is_none());
    assert_eq!(
        KeyLog::read(&b"nothing"[..]).err().as_deref(),
        Some("there are no keys of TLS in it")
    );
}

#[test]
fn secrets_are_bounded() {
    for (bytes, is_kept) in [
        (key_log::SECRET_BYTES_MAX, true),
        (key_log::SECRET_BYTES_MAX + 1, false),
    ] {
        let text = format!("CLIENT_RANDOM {} {}\n", "ab".repeat(32), "00".repeat(bytes));
        assert_eq!(KeyLog::read(text.as_bytes()).is_ok(), is_kept);
    }
}

#[test]
fn messages_may_be_cut_anywhere() {
    let mut bytes = vec![8, 0, 0, 1, 9, FINISHED, 0, 0, 2, 1];
    assert_eq!(take_messages(&mut bytes), [8]);
    bytes.push(2);
    assert_eq!(take_messages(&mut bytes), [FINISHED]);
    assert!(bytes.is_empty());
}
