//! Both directions of one simulated connection, and a record of the server's actions on them.
//!
//! The client's calls are public. The server's calls are those of a socket, used by `SimNet` alone. The parent module
//! describes edges and faults.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use driver::io::send::{INLINE_FILE_BYTES, read_range};
use driver::worker::readiness::SocketFlags;
use engines::http::{FileRange, Front, OutputQueue};
use sys::socket::Sent;

use super::Random;

/// The virtual time, and the number of the configuration in force.
#[derive(Debug, Default)]
pub struct Hands {
    /// Monotonic milliseconds.
    pub now_ms: Cell<u64>,
    /// [`server_http::http::LocalHttp::number`] of the configuration for new requests.
    pub generation: Cell<u64>,
}

/// Faults of a wire, per thousand operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A read returns a part; the rest comes a moment later.
    pub short_read: u32,
    /// A read returns nothing; announced data comes a moment later.
    pub late_read: u32,
    /// A send takes a part and then finds no room, though there will be some in a moment.
    pub short_write: u32,
    /// A send takes a part and has room for more.
    pub split_write: u32,
    /// A small file is sent without an earlier read after its head.
    pub no_inline: u32,
}

impl Faults {
    /// Faults with frequencies drawn from `often`.
    pub fn drawn(mut often: impl FnMut() -> u32) -> Self {
        Self {
            short_read: often(),
            late_read: often() / 2,
            short_write: often(),
            split_write: often(),
            no_inline: often(),
        }
    }
}

/// Something the server did: when, under which configuration, and the bytes of that direction until then.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Monotonic milliseconds.
    pub at_ms: u64,
    /// Number of the configuration in force.
    pub generation: u64,
    /// Bytes until then, from the begin of the connection.
    pub total: usize,
}

/// One connection.
#[derive(Debug)]
pub struct Wire {
    hands: Rc<Hands>,
    pub(super) random: Random,
    faults: Faults,
    /// Bytes that wait for the client before a send finds no room.
    capacity: usize,
    inbox: Vec<u8>,
    taken: usize,
    /// Bytes of the inbox that an event has reported.
    announced: usize,
    fin: bool,
    reset: bool,
    outbox: Vec<u8>,
    fetched: usize,
    /// A send found no room and waits for some.
    full: bool,
    /// There was no room, and none has been reported to the server since.
    blocked: bool,
    edge: bool,
    /// Consecutive calls without an effect and without an event.
    fruitless: u32,
    /// When bytes were taken by the server.
    pub takes: Vec<Moment>,
    /// When bytes were sent by the server.
    pub puts: Vec<Moment>,
    /// The server has read the client's end.
    pub fin_seen: bool,
    /// The server has met the reset.
    pub reset_seen: bool,
    /// Small pieces leave at once, as on a listener's socket.
    pub nodelay: bool,
    /// When the server ended its side.
    pub shutdown_ms: Option<u64>,
    /// The server has closed.
    pub closed: bool,
    /// The server closed although it knew of bytes it had not read.
    pub closed_on_input: bool,
    /// Errors of the server.
    pub violations: Vec<String>,
    /// Action of the peer of a dialled wire.
    pub(super) dialled: Dialled,
}

/// State of connections that the server has begun.
#[derive(Debug, Default)]
pub(super) struct Dialled {
    /// It is not established, and has no events.
    pub(super) pending: bool,
    /// Its peer has closed both sides: a reset answers sent bytes.
    pub(super) left: bool,
    /// Its peer closes when the next byte is in transit.
    pub(super) leaving: bool,
    /// Something was sent after an event had reported its end.
    pub(super) end_told: bool,
    pub(super) ignored: bool,
    /// Bytes sent to a peer that had closed.
    pub(super) lost: Vec<u8>,
    /// The error that waits to be taken.
    pub(super) errno: Option<i32>,
    /// A reset came after the peer's end: every later send fails.
    pub(super) unsendable: bool,
}

impl Wire {
    /// A new connection, not yet registered with a poller.
    pub fn new(hands: Rc<Hands>, random: Random, faults: Faults, capacity: usize) -> Self {
        Self {
            hands,
            random,
            faults,
            capacity: capacity.max(1),
            inbox: Vec::new(),
            taken: 0,
            announced: 0,
            fin: false,
            reset: false,
            outbox: Vec::new(),
            fetched: 0,
            full: false,
            blocked: false,
            edge: true,
            fruitless: 0,
            takes: Vec::new(),
            puts: Vec::new(),
            fin_seen: false,
            reset_seen: false,
            nodelay: true,
            shutdown_ms: None,
            closed: false,
            closed_on_input: false,
            violations: Vec::new(),
            dialled: Dialled::default(),
        }
    }

    /// The client sends; nothing after its end.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.fin && !self.reset && !bytes.is_empty() {
            self.inbox.extend_from_slice(bytes);
            self.edge = true;
        }
    }

    /// The client ends its side.
    pub fn end(&mut self) {
        if !self.fin && !self.reset {
            self.fin = true;
            self.edge = true;
        }
    }

    /// The client resets the connection: bytes that the server has not read are lost.
    pub fn reset(&mut self) {
        if !self.reset {
            self.reset = true;
            self.edge = true;
        }
    }

    /// The client reads up to `most` bytes; returns their number.
    pub fn fetch(&mut self, most: usize) -> usize {
        let len = most.min(self.outbox.len() - self.fetched);
        self.fetched += len;
        if len > 0 && self.full {
            self.full = false;
            self.edge = true;
        }
        len
    }

    /// Ends all faults, and makes room for at least this many bytes.
    pub fn behave(&mut self, capacity: usize) {
        self.faults = Faults::default();
        self.capacity = self.capacity.max(capacity);
    }

    /// All that the server has sent.
    pub fn sent(&self) -> &[u8] {
        &self.outbox
    }

    /// Bytes that the server has read.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Bytes that the client has read.
    pub fn fetched(&self) -> usize {
        self.fetched
    }

    /// Bytes that wait to be read by the server.
    pub fn waiting(&self) -> usize {
        self.inbox.len() - self.taken
    }

    /// Whether the client has ended its side.
    pub fn is_ended(&self) -> bool {
        self.fin
    }

    /// Whether the client has reset.
    pub fn is_reset(&self) -> bool {
        self.reset
    }

    /// Whether a send waits for the client to read.
    pub fn is_full(&self) -> bool {
        self.full && self.room() == 0
    }

    /// Whether the server believes that there is no room, even if there is some by now.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Returns whether a poller would report this connection.
    pub fn is_ready(&self) -> bool {
        !self.closed && !self.dialled.pending && (self.edge || (self.full && self.room() > 0))
    }

    /// Returns the event as a poller reports it.
    pub(super) fn event(&mut self) -> SocketFlags {
        self.edge = false;
        self.fruitless = 0;
        if self.room() > 0 {
            (self.full, self.blocked) = (false, false);
        }
        self.announced = self.inbox.len();
        self.dialled.end_told = self.fin;
        let failed = self.reset || self.dialled.errno.is_some();
        SocketFlags {
            readable: self.taken < self.inbox.len() || self.fin || failed,
            writable: self.room() > 0 || failed,
            hung_up: self.fin || failed,
            eof: self.fin && !failed,
        }
    }

    fn room(&self) -> usize {
        self.capacity
            .saturating_sub(self.outbox.len() - self.fetched)
    }

    fn moment(&self, total: usize) -> Moment {
        Moment {
            at_ms: self.hands.now_ms.get(),
            generation: self.hands.generation.get(),
            total,
        }
    }

    fn broken(&mut self) -> io::Error {
        self.reset_seen = true;
        io::ErrorKind::ConnectionReset.into()
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reset {
            return Err(self.broken());
        }
        let there = self.inbox.len() - self.taken;
        if there == 0 {
            self.fin_seen |= self.fin;
            self.try_patience()?;
            return if self.fin {
                Ok(0)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            };
        }
        // All earlier bytes have arrived once the end is reported.
        let is_whole = self.dialled.end_told;
        if !is_whole && self.random.chance(self.faults.late_read) {
            self.come_later();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut len = there.min(buffer.len());
        if !is_whole && len > 1 && self.random.chance(self.faults.short_read) {
            len = self.random.piece(len - 1);
        }
        buffer[..len].copy_from_slice(&self.inbox[self.taken..self.taken + len]);
        self.taken += len;
        if len < there && len < buffer.len() {
            self.come_later();
        }
        self.takes.push(self.moment(self.taken));
        Ok(len)
    }

    /// The server ends its side.
    pub(super) fn shutdown(&mut self) {
        if self.shutdown_ms.is_some() {
            self.violations
                .push("the server's side is ended twice".to_owned());
        }
        self.shutdown_ms = Some(self.hands.now_ms.get());
    }

    /// The server closes.
    pub(super) fn close(&mut self) {
        if self.closed {
            self.violations.push("closed twice".to_owned());
        }
        self.closed = true;
        self.closed_on_input = self.announced > self.taken && !self.reset;
    }

    /// Ends a server that retries forever.
    fn try_patience(&mut self) -> io::Result<()> {
        self.fruitless += 1;
        if self.fruitless < FRUITLESS_MAX {
            return Ok(());
        }
        self.violations.push("the server spins".to_owned());
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Marks unread data as arriving only now: an event will report it.
    fn come_later(&mut self) {
        self.announced = self.taken;
        self.edge = true;
    }

    pub(super) fn send(
        &mut self,
        out: &mut OutputQueue,
        limit: u64,
        inlines: bool,
    ) -> io::Result<Sent> {
        if self.reset {
            return Err(self.broken());
        }
        if self.shutdown_ms.is_some() {
            self.violations
                .push("a send after the end of the server's side".to_owned());
        }
        if self.dialled.unsendable {
            return Err(io::Error::from_raw_os_error(EPIPE));
        }
        if inlines && !self.random.chance(self.faults.no_inline) {
            inline(out)?;
        }
        if std::mem::take(&mut self.dialled.leaving) {
            self.leave();
        }
        if self.dialled.left {
            return self.send_to_closed(out, limit);
        }
        let wanted = usize::try_from(out.len().min(limit)).unwrap_or(usize::MAX);
        let mut most = wanted.min(self.room());
        let split = self.random.chance(self.faults.split_write);
        if (split || self.random.chance(self.faults.short_write)) && most > 0 {
            most = self.random.piece(most);
        }
        let bytes = self.take_from(out, most)?;
        // An edge comes with the room: at once if there is some already.
        let blocked = bytes < wanted && !(split && self.room() > 0);
        self.full |= blocked;
        self.blocked = blocked;
        if bytes == 0 {
            self.try_patience()?;
        }
        if bytes > 0 {
            self.puts.push(self.moment(self.outbox.len()));
        }
        Ok(Sent {
            bytes: bytes as u64,
            blocked,
        })
    }

    /// A send to a peer that has closed: the system takes the bytes, and the reset follows.
    fn send_to_closed(&mut self, out: &mut OutputQueue, limit: u64) -> io::Result<Sent> {
        let wanted = usize::try_from(out.len().min(limit)).unwrap_or(usize::MAX);
        self.dialled.ignored |= self.dialled.end_told;
        let before = self.outbox.len();
        let bytes = self.take_from(out, wanted)?;
        self.dialled.lost.extend(self.outbox.drain(before..));
        self.dialled.errno = Some(EPIPE);
        self.dialled.unsendable = true;
        self.edge = true;
        Ok(Sent {
            bytes: bytes as u64,
            blocked: false,
        })
    }

    /// Takes `most` bytes from the front, pieces of memory one by one or as a list.
    fn take_from(&mut self, out: &mut OutputQueue, most: usize) -> io::Result<usize> {
        let mut done = 0;
        while done < most {
            let room = most - done;
            let len = if self.random.chance(500) {
                take_list(out, room, &mut self.outbox)
            } else {
                take_front(out, room, &mut self.outbox)?
            };
            out.advance(len as u64);
            done += len;
        }
        Ok(done)
    }
}

/// As in `send_gather`, a small file is sent with the bytes before it.
fn inline(out: &mut OutputQueue) -> io::Result<()> {
    let result = out.inline_front_file(|range, bytes| {
        if range.len > INLINE_FILE_BYTES {
            return Err(None);
        }
        read_range(range, bytes).map_err(Some)
    });
    match result {
        Err(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

fn take_front(out: &OutputQueue, room: usize, to: &mut Vec<u8>) -> io::Result<usize> {
    match out.front() {
        None => Err(io::Error::other("the queue ends before its length")),
        Some(Front::Bytes(bytes)) => {
            let len = bytes.len().min(room);
            to.extend_from_slice(&bytes[..len]);
            Ok(len)
        }
        Some(Front::File(range)) => {
            let len = range.len.min(room as u64);
            let part = FileRange {
                file: Rc::clone(&range.file),
                offset: range.offset,
                len,
            };
            read_range(&part, to)?;
            Ok(len as usize)
        }
    }
}

/// The leading pieces of memory, as one call of `writev` takes them; 0 in front of a file.
fn take_list(out: &OutputQueue, room: usize, to: &mut Vec<u8>) -> usize {
    let mut slices = [io::IoSlice::new(&[]); LIST_MAX];
    let count = out.slices(&mut slices);
    let mut done = 0;
    for slice in &slices[..count] {
        let len = slice.len().min(room - done);
        to.extend_from_slice(&slice[..len]);
        done += len;
    }
    done
}

const EPIPE: i32 = 32;
/// Fruitless calls between two events; spurious turns make some.
const FRUITLESS_MAX: u32 = 1000;
/// Pieces of memory of one send.
const LIST_MAX: usize = 8;
