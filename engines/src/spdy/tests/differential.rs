//! Events and output do not depend on how the input is cut.

use super::*;
use crate::mux::tests::differential::differential_tests;

/// Connections that are worth cutting.
fn corpus() -> Vec<Vec<u8>> {
    let mut encoder = Peer::new();
    let settings = control(frame::SETTINGS, 0, &numbers(&[2, 7, 7, 4, 1]));
    let get = syn_frame(1, 3, &encoder.block_of(&with_path("GET", "/a")), true);
    let own = [
        &with_path("POST", "/b")[..],
        &[("x-own", "1"), ("content-length", "3")],
    ];
    let post = syn_frame(3, 0, &encoder.block_of(&own.concat()), false);
    let broken = syn_frame(5, 0, &encoder.block_of(&[("", "")]), true);
    let again = syn_frame(7, 7, &encoder.block_of(&with_path("GET", "/c")), true);
    let upload = [data_frame(3, b"ab", false), data_frame(3, b"c", true)].concat();
    let wrong = [data_frame(3, b"abcd", false), data_frame(3, b"e", true)].concat();
    let steer = [
        control(frame::PING, 0, &numbers(&[1])),
        control(frame::WINDOW_UPDATE, 0, &numbers(&[1, 9])),
        control(frame::WINDOW_UPDATE, 0, &numbers(&[0, 9])),
        control(99, 0, b"unknown"),
        control(frame::RST_STREAM, 0, &numbers(&[1, 5])),
    ]
    .concat();
    let bad = control(frame::WINDOW_UPDATE, 0, &numbers(&[0, MAX]));
    vec![
        [&settings[..], &get].concat(),
        [&settings[..], &get, &post, &upload, &broken, &again].concat(),
        [&get[..], &post, &wrong, &again].concat(),
        [&get[..], &settings, &steer].concat(),
        [&get[..], &bad, &post].concat(),
        [&get[..], &get].concat(),
        b"\x80\x03\0\x01GET / HTTP/1.1".to_vec(),
    ]
}

const MAX: u32 = (1 << 31) - 1;

differential_tests!(0, 3);
