//! TLS below a connection's protocol.

use std::io;

use engines::http::Gather;

use super::state::{Closed, Conn};
use crate::sys::socket::Sent;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// The TLS side of a connection.
pub(in crate::worker) struct Tls;

/// What encryption needs besides.
pub struct Sealer;

impl Tls {
    pub(super) fn has_output(&self) -> bool {
        false
    }

    pub(super) fn close(&mut self) {}
}

pub(super) fn receive<N: Net>(
    _: &mut Conn<N::Socket>,
    _: &mut Shared<N>,
    _: &mut [u8],
) -> Result<(), Closed> {
    Err(Closed)
}

pub(super) fn send<N: Net>(
    _: &mut Tls,
    _: &mut N::Socket,
    _: &mut Gather,
    _: &mut N,
    _: &mut Sealer,
    _: u64,
) -> io::Result<Sent> {
    Ok(Sent::default())
}
