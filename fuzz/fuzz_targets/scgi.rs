//! SCGI, client role: output is parsed to an equal request, by a parser of netstrings alone; events of a response do
//! not depend on whether it comes whole, cut, or in owned buffers.
#![no_main]

use engines::cgi::{Client, RequestOptions};
use engines::client::SendError;
use engines::http::Fields;
use engines::scgi;
use firstbyte_fuzz::cgi_peer::{self, Format};
use libfuzzer_sys::fuzz_target;

struct Scgi;

impl Format for Scgi {
    fn request(
        client: &mut Client,
        params: &Fields,
        _: u8,
        options: RequestOptions,
    ) -> Result<u32, SendError> {
        scgi::request(client, params, options)
    }

    fn read(sent: &[u8], _: u8) -> (Vec<(Vec<u8>, Vec<u8>)>, Vec<u8>) {
        let colon = memchr::memchr(b':', sent).expect("a length");
        let digits = std::str::from_utf8(&sent[..colon]).expect("digits");
        let len: usize = digits.parse().expect("digits");
        assert_eq!(digits, len.to_string());
        let (text, rest) = sent[colon + 1..].split_at(len);
        let text = text
            .strip_suffix(b"\0")
            .expect("a NUL behind the last value");
        let words: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
        assert!(words.len().is_multiple_of(2), "a name without a value");
        let pairs = words.chunks(2);
        let pairs = pairs.map(|pair| (pair[0].to_vec(), pair[1].to_vec()));
        let body = rest.strip_prefix(b",").expect("the end of a netstring");
        (pairs.collect(), body.to_vec())
    }
}

fuzz_target!(|input: &[u8]| cgi_peer::run::<Scgi>(input));
