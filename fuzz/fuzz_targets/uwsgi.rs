//! uwsgi, client role: output is parsed to an equal request; events of a response do not depend on whether it comes
//! whole, cut, or in owned buffers.
#![no_main]

use engines::cgi::{Client, RequestOptions};
use engines::client::SendError;
use engines::http::Fields;
use engines::uwsgi;
use firstbyte_fuzz::cgi_peer::{self, Format};
use libfuzzer_sys::fuzz_target;

struct Uwsgi;

impl Format for Uwsgi {
    fn request(
        client: &mut Client,
        params: &Fields,
        choice: u8,
        options: RequestOptions,
    ) -> Result<u32, SendError> {
        // A text without a name is sent raw, so a reader cannot distinguish it from parameters.
        if params.fields.iter().any(|param| param.name.is_empty()) {
            return Err(SendError::BadParameter);
        }
        uwsgi::request(client, params, [choice, !choice], options)
    }

    fn read(sent: &[u8], choice: u8) -> (Vec<(Vec<u8>, Vec<u8>)>, Vec<u8>) {
        assert_eq!([sent[0], sent[3]], [choice, !choice]);
        let size = usize::from(u16::from_le_bytes([sent[1], sent[2]]));
        let (mut rest, body) = sent[4..].split_at(size);
        let mut pairs = Vec::new();
        while !rest.is_empty() {
            let mut word = || {
                let len = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
                let word = rest[2..2 + len].to_vec();
                rest = &rest[2 + len..];
                word
            };
            pairs.push((word(), word()));
        }
        (pairs, body.to_vec())
    }
}

fuzz_target!(|input: &[u8]| cgi_peer::run::<Uwsgi>(input));
