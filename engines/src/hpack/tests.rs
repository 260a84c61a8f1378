//! Both directions together, the examples of RFC 7541, and broken blocks.

use super::{Decoder, Encoder, Fault, Indexing};

type Fields = Vec<(String, String)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Fault> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("digits"))
        .collect()
}

fn pairs(fields: &[(&str, &str)]) -> Fields {
    fields
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect()
}

/// RFC 7541 appendix C.4: requests with Huffman coding.
#[test]
fn requests_of_the_specification() {
    let mut decoder = Decoder::new(4096);
    let first = hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff");
    let start = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    assert_eq!(decode(&mut decoder, &first), Ok(pairs(&start)));
    let second = hex("8286 84be 5886 a8eb 1064 9cbf");
    let fields = decode(&mut decoder, &second).expect("valid");
    assert_eq!(fields[3], (":authority".into(), "www.example.com".into()));
    assert_eq!(fields[4], ("cache-control".into(), "no-cache".into()));
    let third = hex("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
    let fields = decode(&mut decoder, &third).expect("valid");
    assert_eq!(fields[4], ("custom-key".into(), "custom-value".into()));
}

/// RFC 7541 appendix C.6: responses with Huffman coding and a table of 256 bytes, from which entries go.
#[test]
fn responses_of_the_specification() {
    let mut decoder = Decoder::new(256);
    let first = hex(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    );
    let fields = decode(&mut decoder, &first).expect("valid");
    assert_eq!(fields[2].1, "Mon, 21 Oct 2013 20:13:21 GMT");
    let second = decode(&mut decoder, &hex("4883 640e ffc1 c0bf")).expect("valid");
    assert_eq!(second[0], (":status".into(), "307".into()));
    assert_eq!(
        second[3],
        ("location".into(), "https://www.example.com".into())
    );
    let third = hex(
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    let fields = decode(&mut decoder, &third).expect("valid");
    assert_eq!(fields[4], ("content-encoding".into(), "gzip".into()));
    assert!(fields[5].1.starts_with("foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU"));
}

#[test]
fn broken_blocks_are_refused() {
    for (block, fault) in [
        ("80", Fault::BadIndex),
        ("be", Fault::BadIndex),
        ("ff80 8080 8001", Fault::TooLong),
        ("ff80 8080", Fault::Truncated),
        ("41", Fault::Truncated),
        ("4103 6162", Fault::Truncated),
        ("40 0161", Fault::Truncated),
        ("7f", Fault::Truncated),
        ("4181 ff", Fault::BadHuffman),
        ("3fe2 1f", Fault::BadTableSize),
        ("82 20", Fault::BadTableSize),
    ] {
        assert_eq!(
            decode(&mut Decoder::new(4096), &hex(block)),
            Err(fault),
            "{block}"
        );
    }
    // 4096 itself is allowed.
    assert_eq!(
        decode(&mut Decoder::new(4096), &hex("3fe1 1f")),
        Ok(Vec::new())
    );
}

#[test]
fn lowered_table_must_be_acknowledged_by_the_next_block() {
    let mut decoder = Decoder::new(4096);
    decoder.set_allowed_bytes(100);
    assert_eq!(
        decode(&mut decoder, &hex("82")),
        Err(Fault::MissingTableSize)
    );
    let mut decoder = Decoder::new(4096);
    decoder.set_allowed_bytes(100);
    assert!(decode(&mut decoder, &hex("3f45 82")).is_ok());
}

fn encode(encoder: &mut Encoder, fields: &[(&str, &str, Indexing)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value, indexing) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), *indexing, &mut out);
    }
    out
}

#[test]
fn repeated_fields_cost_a_byte() {
    for huffman in [false, true] {
        let (mut encoder, mut decoder) = (Encoder::new(4096, huffman), Decoder::new(4096));
        let fields = [
            ("server", "firstbyte", Indexing::Yes),
            ("content-type", "text/html", Indexing::Yes),
            ("x-own", "value", Indexing::Yes),
            ("set-cookie", "secret", Indexing::Never),
            (":status", "418", Indexing::Yes),
            (":status", "200", Indexing::Yes),
        ];
        let first = encode(&mut encoder, &fields);
        let second = encode(&mut encoder, &fields);
        let plain: Vec<_> = fields.iter().map(|(n, v, _)| (*n, *v)).collect();
        assert_eq!(decode(&mut decoder, &first), Ok(pairs(&plain)));
        assert_eq!(decode(&mut decoder, &second), Ok(pairs(&plain)));
        // Five fields of a byte each, and a name of two bytes with a value of up to seven.
        assert!((12..=14).contains(&second.len()), "{second:x?}");
        assert!(
            second.windows(2).any(|w| w[0] & 0xf0 == 0x10),
            "never indexed"
        );
    }
}

/// Regardless of the date, all fields of a response are found again: none evicts another from the index.
#[test]
fn a_head_that_repeats_costs_a_byte_a_field_at_every_second() {
    let mut encoder = Encoder::new(4096, true);
    for second in 0..20_000 {
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let date = format!(
            "Sat, 21 Nov 2026 {hour:02}:{minute:02}:{:02} GMT",
            second % 60
        );
        let etag = format!("W/\"6b020909-{}\"", second / 200);
        let fields = [
            ("server", "firstbyte", Indexing::Yes),
            ("date", date.as_str(), Indexing::Yes),
            ("content-type", "text/plain", Indexing::Yes),
            ("content-length", "6610", Indexing::Yes),
            (
                "last-modified",
                "Sat, 21 Nov 2026 21:11:37 GMT",
                Indexing::Yes,
            ),
            ("etag", etag.as_str(), Indexing::Yes),
            ("vary", "Accept-Encoding", Indexing::Yes),
            ("content-encoding", "gzip", Indexing::Yes),
        ];
        // Entries that the date evicted return with the second block.
        encode(&mut encoder, &fields);
        encode(&mut encoder, &fields);
        assert_eq!(encode(&mut encoder, &fields).len(), fields.len(), "{date}");
    }
}

#[test]
fn entries_that_went_are_not_referred_to() {
    let (mut encoder, mut decoder) = (Encoder::new(200, true), Decoder::new(4096));
    for round in 0..200 {
        let values: Vec<String> = (0..7).map(|n| format!("{}", (round * n) % 11)).collect();
        let fields: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(n, v)| {
                (
                    ["a", "b", "c", "d", "e", "f", "g"][n],
                    v.as_str(),
                    Indexing::Yes,
                )
            })
            .collect();
        let block = encode(&mut encoder, &fields);
        let plain: Vec<_> = fields.iter().map(|(n, v, _)| (*n, *v)).collect();
        assert_eq!(
            decode(&mut decoder, &block),
            Ok(pairs(&plain)),
            "round {round}"
        );
    }
}

#[test]
fn size_of_the_table_follows_the_peer() {
    let mut encoder = Encoder::new(4096, true);
    let fields = [("x-a", "1", Indexing::Yes)];
    assert_eq!(encode(&mut encoder, &[]), b"");
    encode(&mut encoder, &fields);
    encoder.set_allowed_bytes(0);
    encoder.set_allowed_bytes(300);
    let block = encode(&mut encoder, &fields);
    let mut decoder = Decoder::new(4096);
    assert_eq!(block[..1], [0x20]);
    assert_eq!(decode(&mut decoder, &block), Ok(pairs(&[("x-a", "1")])));
    let mut none = Encoder::new(0, true);
    assert_eq!(encode(&mut none, &fields)[0], 0x20);
    let again = encode(&mut none, &fields);
    assert_eq!(again[0], 0, "nothing is remembered");
}
