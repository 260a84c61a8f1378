//! OCSP: any bytes of a responder are a response or none. A response accepted with verification is also accepted
//! without, and equal; nothing panics.
//!
//! The first byte chooses the server's certificate, with `ocsp.pem` beside this file.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tls::ocsp::{Question, Trust};
use tls::{Authorities, Chain};

fuzz_target!(|input: &[u8]| {
    let Some((&how, bytes)) = input.split_first() else {
        return;
    };
    let world = &*WORLD;
    check_response(world, how, bytes);
});

fn check_response(world: &World, how: u8, response: &[u8]) {
    let chain = &world.chains[usize::from(how & 1)];
    let named = world.question.judge(response, chain, Trust::Named, NOW_S);
    let trust = Trust::Below(&world.authorities);
    if let Ok(answer) = world.question.judge(response, chain, trust, NOW_S) {
        assert_eq!(named, Ok(answer));
    }
}

struct World {
    question: Question,
    /// With and without the issuer's certificate.
    chains: [Chain; 2],
    authorities: Authorities,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let text = include_str!("ocsp.pem");
    let end = text.find(END).expect("there is a certificate") + END.len();
    let chain = |text: &str| Chain::from_pem(text.as_bytes()).expect("they are certificates");
    let authorities = Authorities::from_pem(text.as_bytes()).expect("they are certificates");
    World {
        question: Question::about(&chain(text), &authorities).expect("the issuer is there"),
        chains: [chain(text), chain(&text[..end])],
        authorities,
    }
});

const END: &str = "-----END CERTIFICATE-----\n";
/// A time at which the seeds' responses are valid, seconds since 1970.
const NOW_S: i64 = 1_795_272_703;
