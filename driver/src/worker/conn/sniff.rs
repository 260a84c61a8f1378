//! The header of the PROXY protocol, which comes before everything else on a connection.
//!
//! Source: nginx documentation, `listen ... proxy_protocol`.

use std::rc::Rc;

use engines::proxy_protocol::{self, Fault};
use server_core::errlog::Level;
use server_core::phases;

use super::state::{Closed, Conn, Preface, client};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Takes what of the first `n` received bytes belongs to the header; gives where the client's own bytes begin.
pub(super) fn read_preface<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    n: usize,
) -> Result<usize, Closed> {
    let Preface::Awaited(held) = &mut c.preface else {
        return Ok(0);
    };
    let before = held.len();
    let input = [held, &sh.scratch[..n]].concat();
    let parsed = match proxy_protocol::parse(&input) {
        Ok(None) => {
            *held = input.into_boxed_slice();
            return Ok(n);
        }
        Ok(Some(parsed)) => parsed,
        Err(fault) => {
            refuse(c, sh, fault, &input);
            return Err(Closed);
        }
    };
    c.preface = match parsed.header {
        Some(header) => Preface::Read(Rc::new(header)),
        None => Preface::Absent,
    };
    Ok(parsed.used.saturating_sub(before))
}

/// Logs a header that breaks the protocol, with the line it came on.
fn refuse<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, fault: Fault, held: &[u8]) {
    let client = client(c, sh, false);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    let end = held.iter().position(|b| matches!(b, b'\r' | b'\n'));
    let line = &held[..end.unwrap_or(held.len()).min(SHOWN_BYTES)];
    let shown = match fault {
        Fault::Broken => format!(": \"{}\"", String::from_utf8_lossy(line)),
        _ => String::new(),
    };
    let text = format_args!("{fault}{shown} while reading PROXY protocol");
    x.log(Level::Error, text);
    sh.drop_unlogged(x);
}

/// Most bytes of a broken header that the log shows.
const SHOWN_BYTES: usize = proxy_protocol::MAX_V1_BYTES;
