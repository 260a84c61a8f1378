//! The simulated world of the worker: sockets, clock and loop, deterministic from one seed. For tests alone.
//!
//! A [`Wire`] is both directions of one connection in memory. The server's end is a [`SimSocket`], used through
//! [`SimNet`] like a socket; the client's end is the wire itself. Readiness is edge-triggered, as with epoll: an event
//! comes if bytes, an end or a reset arrive, or if room returns after a send without room. The event then reports the
//! whole state. Bytes of file ranges are read from their descriptors. Faults are drawn from the wire's own generator:
//! reads and writes that stop at any byte, bytes that arrive a moment later, buffers that fill early.
//!
//! The wire records the server's actions with their times, for a judge that is independent of the server. Absent:
//! urgent data, half-open connections, the loss of a reset.
#![forbid(unsafe_code)]

mod dialled;
mod disk;
mod random;
mod reading;
mod tally;
mod wire;
mod world;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use engines::http::{FileRange, OutputQueue};

pub use disk::{Disk, Fetching};
pub use random::Random;
pub use reading::Reading;
pub use wire::{Faults, Hands, Moment, Wire};
pub use world::{ClosedBy, Command, Link, World};

use driver::io::read_ahead::ReadAhead;
use driver::io::read_pool::{FETCH_BYTES, Fetch, Refused};
use driver::io::send::{Pieces, read_file};
use driver::worker::net::Net;
use server_base::thread_pool::ThreadPool;
use server_base::waker::RemoteWaker;
use server_upstream::route::{SocketOptions, UpstreamAddr};
use sys::connect::{ConnectError, Connecting};
use sys::socket::Sent;

/// The server's end of a wire; dropping it closes the connection.
#[derive(Debug)]
pub struct SimSocket(Rc<RefCell<Wire>>);

impl SimSocket {
    /// The server's end.
    pub fn new(wire: Rc<RefCell<Wire>>) -> Self {
        Self(wire)
    }
}

impl SimSocket {
    /// Both directions of the connection.
    pub fn wire(&self) -> &Rc<RefCell<Wire>> {
        &self.0
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.0.borrow_mut().close();
    }
}

/// Sockets of the simulation.
#[derive(Default)]
pub struct SimNet {
    /// Peers of connections to servers; without them every connection is refused.
    pub servers: Option<Box<dyn Servers>>,
    /// The disk with files that are not in memory; `None` if all files are in memory.
    pub disk: Option<Disk>,
}

/// The simulated upstream servers.
pub trait Servers {
    /// Connects to one of them; the client's side of the wire is the upstream server.
    ///
    /// # Errors
    /// It is refused.
    fn connect(&mut self, addr: &UpstreamAddr) -> io::Result<Rc<RefCell<Wire>>>;
}

impl Net for SimNet {
    type Socket = SimSocket;

    fn receive(&mut self, socket: &mut SimSocket, buffer: &mut [u8]) -> io::Result<usize> {
        socket.0.borrow_mut().receive(buffer)
    }

    fn send(
        &mut self,
        socket: &mut SimSocket,
        out: &mut OutputQueue,
        limit: u64,
        _chunk: u64,
    ) -> io::Result<Sent> {
        socket.0.borrow_mut().send(out, limit, true)
    }

    fn send_cached(
        &mut self,
        socket: &mut SimSocket,
        out: &mut OutputQueue,
        limit: u64,
        pieces: Pieces,
        ahead: Option<&ReadAhead>,
    ) -> io::Result<Sent> {
        let Some(disk) = &self.disk else {
            return self.send(socket, out, limit, pieces.max_bytes);
        };
        let mut sent = Sent::default();
        while sent.bytes < limit && !sent.blocked {
            let most = disk.present_bytes(out, ahead);
            let present = most.min(limit - sent.bytes);
            if present == 0 {
                break;
            }
            // Without inlining: a file read together with the bytes before it has to be in memory.
            let step = socket.0.borrow_mut().send(out, present, false)?;
            sent.bytes += step.bytes;
            sent.blocked = step.blocked;
        }
        Ok(sent)
    }

    fn stops_at_missing(&self) -> bool {
        self.disk.is_some()
    }

    fn fetch(
        &mut self,
        range: &FileRange,
        _: &ThreadPool,
        waker: RemoteWaker,
    ) -> Result<Fetch, Refused> {
        let disk = self.disk.as_mut().ok_or(Refused::Full)?;
        disk.fetch(range, waker)
    }

    fn piece_bytes(&self) -> u64 {
        let disk = self.disk.as_ref();
        disk.map_or(FETCH_BYTES, |disk| disk.piece_bytes)
    }

    /// Fewer bytes than there are mean that the socket is full, as they do in a system.
    fn send_bytes(&mut self, socket: &mut SimSocket, bytes: &[u8]) -> io::Result<usize> {
        let mut out = OutputQueue::default();
        out.push_bytes(bytes);
        let mut wire = socket.0.borrow_mut();
        let mut taken = 0;
        while !out.is_empty() {
            let sent = wire.send(&mut out, u64::MAX, false)?;
            taken += sent.bytes as usize;
            if sent.blocked {
                break;
            }
        }
        Ok(taken)
    }

    fn read_file(&mut self, range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
        read_file(range, buffer)
    }

    fn shutdown(&mut self, socket: &mut SimSocket) {
        socket.0.borrow_mut().shutdown();
    }

    /// The simulated peer does not distinguish a reset from a close.
    fn reset(&mut self, _: &mut SimSocket) {}

    fn local_addr(&mut self, _: &mut SimSocket) -> Option<SocketAddr> {
        None
    }

    /// It is established when the wire reports room, or at once, as on one host.
    fn connect(
        &mut self,
        addr: &UpstreamAddr,
        _: &SocketOptions,
    ) -> Result<Connecting<SimSocket>, ConnectError> {
        let refused = || Err(io::ErrorKind::ConnectionRefused.into());
        let wire = self.servers.as_mut();
        let wire = wire.map_or_else(refused, |servers| servers.connect(addr));
        match wire {
            Ok(wire) => {
                let established = wire.borrow_mut().is_established_at_once();
                Ok(Connecting {
                    socket: SimSocket::new(wire),
                    established,
                })
            }
            Err(error) => Err(ConnectError {
                call: "connect()",
                error,
            }),
        }
    }

    fn take_error(&mut self, socket: &mut SimSocket) -> Option<io::Error> {
        socket.0.borrow_mut().take_error()
    }

    /// Data received by a present peer is acknowledged at once.
    fn acknowledged_bytes(&mut self, socket: &mut SimSocket) -> Option<u64> {
        Some(socket.0.borrow().sent().len() as u64)
    }

    fn set_nodelay(&mut self, socket: &mut SimSocket, on: bool) {
        socket.0.borrow_mut().nodelay = on;
    }
}

#[cfg(test)]
mod tests {
    use driver::worker::readiness::SocketFlags;

    use super::*;

    fn wire(faults: Faults, capacity: usize) -> Rc<RefCell<Wire>> {
        Rc::new(RefCell::new(Wire::new(
            Rc::default(),
            Random::new(1),
            faults,
            capacity,
        )))
    }

    fn receive(socket: &mut SimSocket) -> Result<Vec<u8>, io::ErrorKind> {
        let mut buffer = [0; 64];
        let len = SimNet::default()
            .receive(socket, &mut buffer)
            .map_err(|e| e.kind())?;
        Ok(buffer[..len].to_vec())
    }

    #[test]
    fn an_edge_comes_with_bytes_and_with_the_end() {
        let wire = wire(Faults::default(), 10);
        let mut socket = SimSocket::new(Rc::clone(&wire));
        let room = SocketFlags {
            writable: true,
            ..SocketFlags::default()
        };
        assert_eq!(wire.borrow_mut().event(), room);
        assert!(!wire.borrow().is_ready());
        wire.borrow_mut().push(b"ab");
        wire.borrow_mut().end();
        assert!(wire.borrow().is_ready());
        let end = SocketFlags {
            readable: true,
            hung_up: true,
            eof: true,
            ..room
        };
        assert_eq!(wire.borrow_mut().event(), end);
        assert_eq!(receive(&mut socket).as_deref(), Ok(&b"ab"[..]));
        assert_eq!(receive(&mut socket).as_deref(), Ok(&b""[..]));
        assert!(wire.borrow().fin_seen);
    }

    #[test]
    fn a_send_without_room_is_told_when_there_is_some() {
        let wire = wire(Faults::default(), 4);
        let mut socket = SimSocket::new(Rc::clone(&wire));
        let mut out = OutputQueue::default();
        out.push_bytes(b"abcdef");
        wire.borrow_mut().event();
        let sent = SimNet::default().send(&mut socket, &mut out, 100, 0).ok();
        assert_eq!(
            sent,
            Some(Sent {
                bytes: 4,
                blocked: true
            })
        );
        assert!(!wire.borrow().is_ready() && wire.borrow().is_full());
        assert_eq!(wire.borrow_mut().fetch(3), 3);
        assert!(wire.borrow().is_ready());
        let sent = SimNet::default().send(&mut socket, &mut out, 100, 0).ok();
        assert_eq!(
            sent,
            Some(Sent {
                bytes: 2,
                blocked: false
            })
        );
        assert_eq!(wire.borrow().sent(), b"abcdef");
    }

    #[test]
    fn a_close_on_bytes_the_server_knew_of_is_noted() {
        let wire = wire(Faults::default(), 4);
        wire.borrow_mut().push(b"x");
        drop(SimSocket::new(Rc::clone(&wire)));
        assert!(wire.borrow().closed && !wire.borrow().closed_on_input);
        wire.borrow_mut().closed = false;
        wire.borrow_mut().event();
        drop(SimSocket::new(Rc::clone(&wire)));
        assert!(wire.borrow().closed_on_input);
    }

    #[test]
    fn what_a_short_read_leaves_comes_later() {
        let wire = wire(
            Faults {
                short_read: 1000,
                ..Faults::default()
            },
            4,
        );
        let mut socket = SimSocket::new(Rc::clone(&wire));
        wire.borrow_mut().push(b"abcdefgh");
        wire.borrow_mut().event();
        let first = receive(&mut socket).unwrap_or_default();
        assert!(!first.is_empty() && first.len() < 8);
        assert!(wire.borrow().is_ready());
    }
}
