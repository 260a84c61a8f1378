//! SPDY/3.1 by prior knowledge, by the engine of servers.

use std::io;
use std::rc::Rc;

use engines::spdy::{Conn, Event, Settings};

use super::spdy_response::response;
use super::{Wire, body};

pub(super) fn converse(mut wire: Wire) -> io::Result<()> {
    let mut conn = Conn::new(Rc::new(Settings::default()));
    let mut piece = [0; 2048];
    loop {
        let length = wire.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        conn.receive(&piece[..length]);
        while let Some(event) = conn.event() {
            let Event::Head { stream, head } = event else {
                continue;
            };
            let path = String::from_utf8_lossy(head.bytes(head.target)).into_owned();
            let body = body(&path);
            let size = body.len();
            let mut response = response(&mut conn, stream, size);
            let head_bytes = response.len() - size;
            response[head_bytes..].copy_from_slice(&body);
            if path == "/flush" {
                // A cut inside the body's frame, since a client exposes the received part of a frame.
                let (first, rest) = response.split_at(response.len() - size / 2);
                wire.respond_in_two(first, rest)?;
                continue;
            }
            wire.respond(&response, size)?;
        }
    }
}
