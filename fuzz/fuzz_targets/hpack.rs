//! Header compression: decoded fields are encoded and decoded to the same fields, block after block over the same
//! tables, with and without Huffman coding. Tables keep their size, and nothing panics.
//!
//! The first two bytes choose the sizes of the tables; the rest is header blocks, each after a byte with its length.
#![no_main]

use engines::hpack::{Decoder, Encoder, Indexing};
use libfuzzer_sys::fuzz_target;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fuzz_target!(|input: &[u8]| {
    let Some((&[size, modes], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let table_bytes = usize::from(size) * 32;
    let mut decoder = Decoder::new(table_bytes);
    let mut again: Vec<Again> = [false, true]
        .map(|huffman| Again {
            encoder: Encoder::new(table_bytes, huffman),
            decoder: Decoder::new(4096),
        })
        .into();
    let mut rest = rest;
    let mut allowed_bytes = 4096;
    while let Some((len, after)) = rest.split_first() {
        let (block, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let Some(fields) = decode(&mut decoder, block) else {
            return;
        };
        for pair in &mut again {
            pair.check(&fields, modes);
        }
        if modes & 0x80 != 0 {
            // The peer of the encoders changes the size of its table.
            allowed_bytes = (allowed_bytes * 7 + fields.len() * 100) % 5000;
            for pair in &mut again {
                pair.encoder.set_allowed_bytes(allowed_bytes.min(4096));
            }
        }
    }
});

/// Returns the fields of a block; `None` if it is invalid, which ends the connection.
fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut bytes = 0;
    let result = decoder.decode(block, |name, value| {
        bytes += name.len() + value.len();
        if bytes < 1 << 20 {
            fields.push((name.to_vec(), value.to_vec()));
        }
    });
    decoder.check_invariants();
    result.is_ok().then_some(fields)
}

struct Again {
    encoder: Encoder,
    decoder: Decoder,
}

impl Again {
    fn check(&mut self, fields: &Fields, modes: u8) {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (n, (name, value)) in fields.iter().enumerate() {
            let indexing = match (usize::from(modes) + n) % 5 {
                0 => Indexing::No,
                1 => Indexing::Never,
                _ => Indexing::Yes,
            };
            self.encoder.field(name, value, indexing, &mut block);
        }
        self.encoder.check_invariants();
        assert_eq!(decode(&mut self.decoder, &block).as_ref(), Some(fields));
    }
}
