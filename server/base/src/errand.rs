//! Errands: what a module has fetched from other hosts now and then, asked for by no request.
//!
//! The worker's main thread runs them beside its other duties: it connects, sends what a [`Conversation`] has to say, and
//! gives it what comes back. Nothing here blocks. Absent: TLS towards the peer, and connections that are used again.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::name_servers::NameServers;

/// Something to be fetched again and again while a configuration is served.
pub trait Errand: Send + Sync {
    /// Where it leads.
    fn destination(&self) -> &Destination;

    /// Milliseconds until it begins, counted from the time when its configuration is first served.
    fn begins_in_ms(&self, now_s: i64) -> u64;

    /// What is said on a connection that is about to be made.
    fn begin(self: Arc<Self>) -> Box<dyn Conversation>;

    /// It has ended, well or not; gives the milliseconds until it begins again.
    fn ended(&self, well: bool, now_s: i64) -> u64;
}

/// Where an errand leads.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The host, an address or a name.
    pub host: String,
    /// The port of addresses that a name server tells.
    pub port: u16,
    /// The addresses, in the order in which they are tried; without any, the name servers are asked.
    pub addresses: Vec<SocketAddr>,
    /// Who is asked for addresses.
    pub servers: Option<Arc<NameServers>>,
    /// How long they are waited for, milliseconds.
    pub resolver_timeout_ms: u64,
    /// How long a connection may take, from its beginning to its end, milliseconds.
    pub timeout_ms: u64,
    /// What messages call the peer.
    pub peer: &'static str,
    /// What messages say is being done, with the host: it follows `while `.
    pub action: String,
    /// The last words of messages, about what it is done for.
    pub purpose: String,
}

/// What is said on one connection.
pub trait Conversation: Send {
    /// What is sent, all of it at the beginning.
    fn request(&self) -> &[u8];

    /// Something has come; it must be enough after a limited number of bytes.
    fn receive(&mut self, bytes: &[u8], now_s: i64) -> Progress;

    /// The peer has ended the connection. [`Progress::More`] is as good as a failure.
    fn end(&mut self, now_s: i64) -> Progress;
}

/// How far a conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to come.
    More,
    /// The peer cannot be talked to, as the text says; another address may do better.
    Elsewhere(String),
    /// It has ended: well, or with an answer that the text says is of no use.
    Ended(Result<(), String>),
}
