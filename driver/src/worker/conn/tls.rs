//! TLS below a connection's protocol: received bytes are decrypted before the protocol sees them, what it sends is
//! encrypted into records on its way to the socket.
//!
//! What is ready in one turn leaves in one write: the flight of a handshake and the records behind it. Records begin
//! small, so that the first of them can be read before all of a response is here, and grow while the client keeps
//! reading.

use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Front, Gather};
use server_core::errlog::Level;
use server_core::meters::{self, Event};
use server_core::names::handshake;
use server_core::phases;
use server_core::{certificates, exchange};
use tls::{Fault, Scratch};

use super::sampling::{Stamped, Told};
use super::state::{Closed, Conn, Preface, client};
use super::{end_of_input, mux, take_plain};
use crate::sys::socket::Sent;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// The TLS side of a connection.
pub(in crate::worker) struct Tls {
    conn: tls::Conn,
    /// Encrypted bytes that the socket did not take, and how many bytes of plaintext are in them.
    unsent: Vec<u8>,
    unsent_plain: u64,
    /// Plaintext sent since the connection was last silent, and when the last of it was.
    burst_bytes: u64,
    sent_ms: u64,
    /// `ssl_buffer_size`, where it is set.
    record_bytes: Option<usize>,
    /// The protocol above has been chosen.
    decided: bool,
    config: Option<Arc<tls::Config>>,
    facts: Option<Rc<exchange::Tls>>,
    /// When the ClientHello was read, monotonic microseconds, where moments are noted.
    greeted_us: u64,
    /// Why the handshake failed has been counted.
    refused: bool,
}

/// Memory for encryption, one of a thread.
#[derive(Default)]
pub struct Sealer {
    /// Plaintext of some records, where its pieces lie apart.
    plain: Scratch,
    /// Records that are ready to be sent.
    records: Scratch,
    /// What was decrypted of one read.
    opened: Vec<u8>,
}

impl Tls {
    /// A connection whose first bytes are to be a handshake.
    pub(in crate::worker) fn new() -> Self {
        Self {
            conn: tls::Conn::new(),
            unsent: Vec::new(),
            unsent_plain: 0,
            burst_bytes: 0,
            sent_ms: 0,
            record_bytes: None,
            decided: false,
            config: None,
            facts: None,
            greeted_us: 0,
            refused: false,
        }
    }

    /// Whether there are bytes for the socket besides those of the protocol above.
    pub(super) fn has_output(&self) -> bool {
        !self.unsent.is_empty() || self.conn.has_output()
    }

    /// Whether bytes are encrypted that the socket did not take.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether the protocol above can send nothing yet: its answer to early data waits for the end of the handshake.
    pub(super) fn holds(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// Says that nothing more is sent.
    pub(super) fn close(&mut self) {
        self.conn.close();
    }

    /// What the handshake agreed on, for the exchanges of the connection.
    pub(super) fn facts(&self) -> Option<Rc<exchange::Tls>> {
        self.facts.clone()
    }

    /// Counts why a handshake failed.
    fn count_failure(&mut self, fault: &Fault) {
        if self.facts.is_some() {
            return;
        }
        self.refused = true;
        meters::event(match fault {
            Fault::PlainHttp => Event::FailedPlainHttp,
            Fault::NotTls => Event::FailedNotTls,
            Fault::Rejected => Event::FailedRejected,
            Fault::NoCertificate => Event::FailedNoCertificate,
            Fault::Alert(_) => Event::FailedAlert,
            Fault::Protocol(_) => Event::FailedProtocol,
        });
    }

    /// Counts a handshake that has begun and is not over when the connection ends.
    pub(super) fn count_end(&self) {
        if self.config.is_some() && self.facts.is_none() && !self.refused {
            meters::event(Event::FailedAbandoned);
        }
    }

    /// Plaintext of the next record, bytes.
    fn record_bytes(&mut self, now_ms: u64) -> usize {
        if let Some(bytes) = self.record_bytes {
            return bytes;
        }
        if now_ms.saturating_sub(self.sent_ms) > SILENCE_MS {
            self.burst_bytes = 0;
        }
        if self.burst_bytes < SMALL_UP_TO_BYTES {
            SMALL_RECORD_BYTES
        } else {
            RECORD_BYTES
        }
    }
}

/// Takes received bytes.
pub(super) fn receive<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    input: &mut [u8],
) -> Result<(), Closed> {
    let Some(mut tls) = c.tls.take() else {
        return Err(Closed);
    };
    let mut opened = std::mem::take(&mut sh.sealer.opened);
    opened.clear();
    let mut result = tls
        .conn
        .receive(input, &mut |plain| opened.extend_from_slice(plain));
    if result.is_ok() && tls.conn.hello().is_some() {
        tls.greeted_us = sh.read_us;
        result = start(c, sh, &mut tls, &mut opened);
    }
    if result.is_ok() {
        decide(c, sh, &mut tls);
    }
    let peer_closed = tls.conn.peer_closed();
    let held = match &result {
        Err(Fault::PlainHttp) => tls.conn.take_held(),
        _ => Vec::new(),
    };
    if let Err(fault) = &result {
        tls.count_failure(fault);
    }
    c.tls = Some(tls);
    let taken = match result {
        Ok(()) if opened.is_empty() => Ok(()),
        Ok(()) => take_plain(c, sh, &opened),
        Err(Fault::PlainHttp) => {
            // HTTP/1 answers in the clear, with 497.
            c.tls = None;
            c.plain_on_tls = true;
            take_plain(c, sh, &held)
        }
        Err(fault) => {
            refuse(c, sh, &fault);
            Err(Closed)
        }
    };
    opened.clear();
    sh.sealer.opened = opened;
    taken?;
    if peer_closed {
        c.readable = false;
        end_of_input(c)?;
    }
    Ok(())
}

/// Chooses the server by the name that is asked for, and begins the handshake with its configuration.
fn start<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    tls: &mut Tls,
    opened: &mut Vec<u8>,
) -> Result<(), Fault> {
    let client = client(c, sh, true);
    let http = &sh.generation.http;
    let name = tls
        .conn
        .hello()
        .and_then(|hello| hello.server_name.as_deref());
    let chosen = match handshake(http, c.port(), client.local, name) {
        Ok(chosen) => chosen,
        Err(unmatched) => {
            log(c, sh, Level::Alert, format_args!("{unmatched}"));
            return Err(tls.conn.abandon());
        }
    };
    let server = &http.servers[chosen.certificate];
    let is_late = server.certificates.is_some();
    let Some(mut config) = server.tls.clone() else {
        return Err(tls.conn.reject());
    };
    if config.rejects() {
        return Err(tls.conn.reject());
    }
    if is_late {
        let Some(loaded) = load_certificates(c, sh, tls, chosen.certificate) else {
            return Err(tls.conn.abandon());
        };
        config = loaded;
    }
    tls.record_bytes = Some(config.record_bytes()).filter(|bytes| *bytes != RECORD_BYTES);
    let result = tls.conn.start(&config, chosen.offer, &mut |plain| {
        opened.extend_from_slice(plain);
    });
    tls.config = Some(config);
    result
}

/// The settings of a server whose certificates are named by variables, with those that this handshake means.
fn load_certificates<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    tls: &Tls,
    server: usize,
) -> Option<Arc<tls::Config>> {
    let client = client(c, sh, true);
    let mut x = sh.exchange(client, c.port());
    if let Preface::Read(header) = &c.preface {
        x.proxied = Some(Rc::clone(header));
    }
    let loaded = certificates::load(&mut x, &mut sh.ctx(), server, tls.conn.asked());
    sh.drop_unlogged(x);
    loaded
}

/// Notes what the handshake agreed on, and begins the protocol that was chosen.
fn decide<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, tls: &mut Tls) {
    if !tls.decided {
        match tls.conn.alpn() {
            Some(b"h2") => mux::open_h2(c, sh),
            Some(b"spdy/3.1") => mux::open_spdy(c, sh),
            _ => {}
        }
        tls.decided = c.mux.is_some();
    }
    if tls.facts.is_none()
        && let Some(info) = tls.conn.info()
        && let Some(config) = &tls.config
    {
        meters::event(match info.resumed {
            true => Event::HandshakeResumed,
            false => Event::HandshakeFull,
        });
        let mut facts = exchange::Tls::new(Arc::clone(config), info);
        (facts.greeted_us, facts.finished_us) = (tls.greeted_us, sh.read_us);
        tls.facts = Some(Rc::new(facts));
    }
    if let Some(facts) = &tls.facts {
        facts.early_data.set(tls.conn.is_early());
    }
}

/// Logs why a handshake failed.
fn refuse<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, fault: &Fault) {
    log(c, sh, Level::Info, format_args!("{fault}"));
}

/// Writes to the log of the default server what happened in a handshake.
fn log<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    level: Level,
    text: fmt::Arguments<'_>,
) {
    let client = client(c, sh, false);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    x.log(level, format_args!("{text} while SSL handshaking"));
    sh.drop_unlogged(x);
}

/// Encrypts and sends from the front of `out`; gives bytes of plaintext that have left whole.
pub(super) fn send<N: Net>(
    tls: &mut Tls,
    socket: &mut N::Socket,
    out: &mut Gather,
    net: &mut N,
    sealer: &mut Sealer,
    now_ms: u64,
) -> io::Result<Sent> {
    let mut sent = Sent::default();
    if !tls.unsent.is_empty() {
        let taken = net.send_bytes(socket, &tls.unsent)?;
        tls.unsent.drain(..taken);
        if !tls.unsent.is_empty() {
            sent.blocked = true;
            return Ok(sent);
        }
        sent.bytes += std::mem::take(&mut tls.unsent_plain);
        tls.unsent = Vec::new();
    }
    while sent.bytes < super::WRITE_BYTES {
        sealer.records.clear(KEEP_BYTES);
        sealer.records.extend(&tls.conn.take_output());
        let plain = seal(tls, out, net, sealer, now_ms)?;
        if sealer.records.is_empty() {
            break;
        }
        let records = sealer.records.filled();
        let taken = net.send_bytes(socket, records)?;
        if taken < records.len() {
            tls.unsent = records[taken..].to_vec();
            tls.unsent_plain = plain;
            sent.blocked = true;
            break;
        }
        sent.bytes += plain;
    }
    Ok(sent)
}

/// Encrypts and sends as [`send`] does, once, and has told of the first byte of the record that carries the byte after
/// `lead` bytes of `out`.
///
/// # Errors
/// The file's error, or the socket's.
pub(super) fn send_stamped<N: Net>(
    tls: &mut Tls,
    socket: &mut N::Socket,
    out: &mut Gather,
    net: &mut N,
    sealer: &mut Sealer,
    now_ms: u64,
    lead: u64,
) -> io::Result<Stamped> {
    sealer.records.clear(KEEP_BYTES);
    sealer.records.extend(&tls.conn.take_output());
    let mut plain = 0;
    if lead > 0 {
        collect(out, net, &mut sealer.plain, lead as usize)?;
        let record_bytes = tls.record_bytes(now_ms);
        for record in sealer.plain.filled().chunks(record_bytes) {
            plain += encrypt(tls, record, &mut sealer.records, now_ms)?;
        }
    }
    let before = sealer.records.len();
    plain += seal(tls, out, net, sealer, now_ms)?;
    let records = sealer.records.filled();
    let stamped = records.get(..=before).unwrap_or(records);
    let mut taken = net.send_stamped(socket, &[IoSlice::new(stamped)])?;
    let told = match taken {
        0 => Told::Nothing,
        taken if taken == before + 1 => Told::After(before as u64),
        _ => Told::Another,
    };
    if let Told::After(_) = told {
        taken += net.send_bytes(socket, &records[taken..])?;
    }
    let mut sent = Sent::default();
    if taken < records.len() {
        tls.unsent = records[taken..].to_vec();
        tls.unsent_plain = plain;
        sent.blocked = true;
    } else {
        sent.bytes = plain;
    }
    Ok(Stamped { sent, told })
}

/// Encrypts up to [`SEALED_BYTES`] from the front of `out`; gives how many bytes of it.
fn seal<N: Net>(
    tls: &mut Tls,
    out: &mut Gather,
    net: &mut N,
    sealer: &mut Sealer,
    now_ms: u64,
) -> io::Result<u64> {
    let mut total = 0;
    if !tls.conn.is_open() {
        return Ok(0);
    }
    while total < SEALED_BYTES && !out.is_empty() {
        let most = tls.record_bytes(now_ms);
        if let Some(Front::Bytes(bytes)) = out.front()
            && bytes.len() >= most
        {
            total += encrypt(tls, &bytes[..most], &mut sealer.records, now_ms)?;
            out.advance(most as u64);
            continue;
        }
        collect(out, net, &mut sealer.plain, (SEALED_BYTES - total) as usize)?;
        let mut rest = sealer.plain.filled();
        while !rest.is_empty() {
            let (record, after) = rest.split_at(rest.len().min(tls.record_bytes(now_ms)));
            total += encrypt(tls, record, &mut sealer.records, now_ms)?;
            rest = after;
        }
    }
    Ok(total)
}

/// Encrypts one record; gives how many bytes of plaintext it has.
fn encrypt(tls: &mut Tls, plain: &[u8], records: &mut Scratch, now_ms: u64) -> io::Result<u64> {
    let result = tls.conn.encrypt(plain, RECORD_BYTES, records);
    result.map_err(io::Error::other)?;
    tls.burst_bytes += plain.len() as u64;
    tls.sent_ms = now_ms;
    Ok(plain.len() as u64)
}

/// Takes up to `most` bytes from the front of `out`; files are read.
fn collect<N: Net>(
    out: &mut Gather,
    net: &mut N,
    plain: &mut Scratch,
    most: usize,
) -> io::Result<()> {
    plain.clear(KEEP_BYTES);
    while plain.len() < most {
        let room = most - plain.len();
        let taken = match out.front() {
            None => break,
            Some(Front::Bytes(bytes)) => {
                let taken = bytes.len().min(room);
                plain.extend(&bytes[..taken]);
                taken
            }
            Some(Front::File(range)) => {
                let wanted = usize::try_from(range.len).unwrap_or(room).min(room);
                let read = net.read_file(range, plain.room(wanted))?;
                plain.fill(read);
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                read
            }
        };
        out.advance(taken as u64);
    }
    Ok(())
}

/// Plaintext of a record while the client's window is not known to be open.
const SMALL_RECORD_BYTES: usize = 4 << 10;
/// Plaintext after which records are large.
const SMALL_UP_TO_BYTES: u64 = 32 << 10;
/// Largest record (RFC 8446 section 5.1).
const RECORD_BYTES: usize = 16 << 10;
/// A pause after which records are small again.
const SILENCE_MS: u64 = 1000;
/// Plaintext encrypted for one write.
const SEALED_BYTES: u64 = 64 << 10;
/// Memory that is kept for the next write.
const KEEP_BYTES: usize = 128 << 10;
