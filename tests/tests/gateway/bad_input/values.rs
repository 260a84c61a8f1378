//! Answers of a memcached server that break the protocol.
//!
//! Source: memcached, doc/protocol.txt, "Retrieval command".

use super::rows::{Gateway, Row, all_are_as_expected};

/// A memcached response that is passed on; `KEY` is replaced by the key.
fn value(what: &str, answer: impl AsRef<[u8]>) -> Row {
    Row::passed(Gateway::Memcached, what, answer, "hello")
}

fn no_value(what: &str, answer: impl AsRef<[u8]>, log: &'static str) -> Row {
    Row::refused(Gateway::Memcached, what, answer, log)
}

#[test]
fn answers_of_memcached_that_are_none_are_refused() {
    let invalid = "memcached sent invalid response: \"";
    let length = "memcached sent invalid length in response \"VALUE /";
    all_are_as_expected(vec![
        value("nothing wrong", "VALUE KEY 0 5\r\nhello\r\nEND\r\n"),
        no_value(
            "nothing",
            "",
            "upstream prematurely closed connection while reading response header",
        ),
        no_value(
            "ERROR",
            "ERROR\r\n",
            "memcached sent invalid response: \"ERROR\" while",
        ),
        no_value("SERVER_ERROR", "SERVER_ERROR out of memory\r\n", invalid),
        no_value("no words", "\r\n", invalid),
        no_value("END with a blank", "END \r\n", invalid),
        no_value(
            "a line without CR",
            "VALUE KEY 0 5\nhello\r\nEND\r\n",
            invalid,
        ),
        no_value("no flags and no length", "VALUE KEY\r\n", invalid),
        no_value("no length", "VALUE KEY 5\r\nhello\r\nEND\r\n", invalid),
        no_value(
            "a longer key",
            "VALUE KEYx 0 5\r\nhello\r\nEND\r\n",
            invalid,
        ),
        no_value(
            "another key",
            "VALUE other 0 5\r\nhello\r\nEND\r\n",
            "memcached sent invalid key in response \"",
        ),
        no_value(
            "flags that are no number",
            "VALUE KEY x 5\r\nhello\r\nEND\r\n",
            "memcached sent invalid flags in response \"VALUE /",
        ),
        no_value(
            "length with a letter",
            "VALUE KEY 0 5x\r\nhello\r\nEND\r\n",
            length,
        ),
        no_value(
            "negative length",
            "VALUE KEY 0 -5\r\nhello\r\nEND\r\n",
            length,
        ),
        no_value(
            "length beyond numbers",
            "VALUE KEY 0 99999999999999999999\r\nhello\r\nEND\r\n",
            length,
        ),
        no_value(
            "a line without end",
            vec![b'V'; 70_000],
            "upstream sent too big header while reading response header",
        ),
        no_value(
            "not found",
            "END\r\n",
            "was not found by memcached while reading response header",
        )
        .status(404),
    ]);
}

#[test]
fn a_value_is_as_long_as_its_length_says() {
    let trailer = "memcached sent invalid trailer while reading";
    let closed = "upstream prematurely closed connection while reading upstream";
    all_are_as_expected(vec![
        Row::passed(
            Gateway::Memcached,
            "no bytes",
            "VALUE KEY 0 0\r\n\r\nEND\r\n",
            "",
        ),
        value("a longer value", "VALUE KEY 0 5\r\nhello more\r\nEND\r\n").logged(trailer),
        Row::cut(
            Gateway::Memcached,
            "a shorter value",
            "VALUE KEY 0 50\r\nhello\r\nEND\r\n",
            closed,
        ),
        value("no line end behind it", "VALUE KEY 0 5\r\nhelloEND\r\n").logged(trailer),
        value("another end", "VALUE KEY 0 5\r\nhelloXXEND\r\n").logged(trailer),
        value(
            "something behind the end",
            "VALUE KEY 0 5\r\nhello\r\nEND\r\nVALUE",
        )
        .unlike_nginx(),
        value(
            "two values",
            "VALUE KEY 0 5\r\nhello\r\nVALUE x 0 1\r\nx\r\nEND\r\n",
        )
        .logged(trailer),
        value("no end", "VALUE KEY 0 5\r\nhello").logged_or_not(),
    ]);
}
