//! The steps of an exchange, recorded only for an exchange that carries a [`Trace`].
//!
//! No exchange that is served carries one. [`Exchange::record_event`](crate::exchange::Exchange::record_event)
//! checks whether there is a trace before it builds the event.

use std::cell::RefCell;

use conf::Pos;
use server_base::errlog::Level;
use server_base::files::FileError;

use crate::decision::Phase;
use crate::names::NameMatch;

/// The recorded steps of an exchange.
#[derive(Debug, Default)]
pub struct Trace(RefCell<Vec<Noted>>);

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Noted {
    /// The location in force, an index of [`Http::locations`](crate::http::Http::locations).
    pub location: usize,
    /// The step.
    pub event: Event,
}

/// The kinds of steps.
#[derive(Debug, Clone)]
pub enum Event {
    /// The server was chosen for this reason.
    Server(NameMatch),
    /// A search for a location begins with this URI.
    Search(Vec<u8>),
    /// A location was compared with the URI; whether it fits. Of exact names and prefixes only the best is compared.
    Compared(usize, bool),
    /// The search has ended here.
    Found(usize),
    /// `limit_except` leads on to its block.
    Excluded(usize),
    /// A directive was run, and this came of it.
    Ran(At, String),
    /// The URI is changed by an internal redirection: path and arguments.
    Redirect(Vec<u8>, Vec<u8>),
    /// The exchange goes to a named location.
    Named(usize),
    /// A handler of a phase, by its place among them, ended the phases with a status.
    Refused(Phase, usize, u16),
    /// A content handler, by its place among them, has answered; `None` is that of the location itself.
    Answered(Option<usize>),
    /// An answer with this status begins.
    Status(u16),
    /// The `error_page` written here leads to this URI.
    ErrorPage(Pos, Vec<u8>),
    /// The part of the cache: its zone and key, its use of a stored response, or the reason against.
    Cache(String),
    /// A line for the error log, whether or not the log takes its level.
    Log(Level, String),
    /// A path was looked at: the call, the path, and the result. The core does not note this itself; a stand-in for
    /// the file system may.
    File(&'static str, Vec<u8>, Result<FileKind, FileError>),
    /// The exchange waits for this many milliseconds.
    Wait(u64),
}

/// The location of the directive that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Here.
    Pos(Pos),
    /// It is the one in effect that has this argument, counted over all directives of the name and its companions.
    Argument(&'static str, usize),
}

/// The kind of file that a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file and its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// Anything else.
    Other,
    /// A change that was skipped.
    Unchanged,
}

impl Trace {
    /// Notes something that happened while a location was in force.
    pub fn push(&self, location: usize, event: Event) {
        self.0.borrow_mut().push(Noted { location, event });
    }

    /// Records an event in the location of the last one.
    pub fn push_here(&self, event: Event) {
        let location = self.0.borrow().last().map_or(0, |noted| noted.location);
        self.push(location, event);
    }

    /// Takes the recorded events, in order.
    pub fn take(&self) -> Vec<Noted> {
        self.0.take()
    }
}
