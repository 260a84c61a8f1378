//! Messages between the supervisor and its worker over the control socket.
//!
//! The worker receives everything that needs the supervisor's rights in one bundle. A bundle has the text of each
//! configuration file that the worker lacks, and open descriptors of databases, listeners and logs. A message is a JSON
//! description with the descriptors' names in order, followed by the bytes of the files. Absent: paths in the other
//! direction; the worker never requests a file by name.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use conf::Memory;
use serde::{Deserialize, Serialize};
use sys::fdpass;

pub use crate::worker::samples::SampleChannel;

/// Purpose of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// To be built and served.
    Serve,
    /// Build it, and serve it when the rest comes. The files are those of an earlier configuration, with their present
    /// text; the supervisor has not parsed them. The bundle has neither listeners nor logs.
    Prepare {
        /// That of [`Cycle::fingerprint`](server_http::Cycle::fingerprint): with another one it is not served.
        fingerprint: u64,
        /// Generation whose files and glob results the worker already has. Only changed ones are in the bundle.
        base: Option<u64>,
    },
    /// Listeners and logs, and nothing else, of the configuration that was prepared.
    Commit,
}

/// One generation of the configuration, with the descriptors that root opened for it.
#[derive(Debug)]
pub struct Bundle {
    /// Counts the configurations that were sent, from 1.
    pub generation: u64,
    /// How the worker uses it.
    pub step: Step,
    /// Only the bytes of files have changed since the previous generation: connections stay, whatever
    /// `reload_connections` is.
    pub renewed: bool,
    /// The absolute path of the main configuration file.
    pub conf_path: String,
    /// The prefix of relative paths.
    pub prefix: String,
    /// The directives of `-g`.
    pub globals: Option<String>,
    /// Error log if the configuration names none: an absolute path, or `stderr`.
    pub error_log: Option<String>,
    /// Access log if the configuration has no `access_log`, absolute.
    pub access_log: String,
    /// Every file that was read, with its text; see [`Step::Prepare`].
    pub files: Vec<(String, Arc<Vec<u8>>)>,
    /// Every pattern that was expanded, with the paths it gave; likewise.
    pub globs: Vec<(String, Vec<String>)>,
    /// Data files that directives name, open for reading, by path.
    pub data: Vec<(String, OwnedFd)>,
    /// Every host that was looked up, with its addresses.
    pub hosts: Vec<(String, Vec<IpAddr>)>,
    /// Listening sockets by address as `ListenAddr` prints it. An address with `reuseport` comes once
    /// for each worker thread, in order.
    pub listeners: Vec<(String, OwnedFd)>,
    /// Log files by path.
    pub logs: Vec<(String, OwnedFd)>,
    /// The way of samples to the store process, if connections are recorded.
    pub samples: Option<SampleChannel>,
}

impl Bundle {
    /// Takes the files and the answers to patterns out, and adds them to `base`.
    #[must_use]
    pub fn take_texts(&mut self, base: Memory) -> Memory {
        let files = std::mem::take(&mut self.files);
        let texts = files
            .iter()
            .map(|(path, text)| (path.as_str(), Arc::clone(text)));
        let mut texts = base.with_files(texts);
        for (pattern, paths) in std::mem::take(&mut self.globs) {
            texts.add_glob(pattern, paths.into_iter().map(PathBuf::from).collect());
        }
        texts
    }
}

/// Message of the supervisor.
#[derive(Debug)]
pub enum ToWorker {
    /// Serve by this from now on, or prepare to.
    Configure(Box<Bundle>),
    /// Write to these logs instead, by path.
    Reopen(Vec<(String, OwnedFd)>),
    /// Finish requests in progress, then exit.
    Quit,
    /// Exit now.
    Terminate,
}

/// A message that came and cannot be used; those after it can.
#[derive(Debug)]
pub struct Unusable {
    /// The generation that it was to configure; 0 for another or an unreadable message.
    pub generation: u64,
    /// The reason: EMFILE if there was no room for its descriptors.
    pub error: io::Error,
}

/// Message of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// It serves by this generation.
    Ready {
        /// Which.
        generation: u64,
    },
    /// It has built this generation, and serves it when it gets the rest.
    Prepared {
        /// Which.
        generation: u64,
    },
    /// It cannot build this generation from the bundle: the supervisor has to read the configuration itself.
    Unprepared {
        /// Which.
        generation: u64,
    },
    /// It could not use this generation and keeps the previous one.
    Failed {
        /// Which.
        generation: u64,
        /// The reason, as text for the error log.
        message: String,
    },
    /// Connections that were lost to a panic, since the start.
    Panicked {
        /// Number of descriptors.
        count: u64,
    },
}

impl ToWorker {
    /// Sends the message, which the worker must have taken within `limit`; the descriptors stay open in this process.
    ///
    /// # Errors
    /// As `fdpass::send_msg`.
    pub fn send(&self, socket: impl AsFd, limit: Duration) -> io::Result<()> {
        let (payload, fds) = self.encode()?;
        fdpass::send_msg(socket, &payload, &fds, limit)
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// Those of `fdpass::recv_msg`, after which nothing can be received. A complete message that cannot be used is no
    /// error of the stream.
    pub fn receive(socket: impl AsFd) -> io::Result<Result<Self, Unusable>> {
        let message = fdpass::recv_msg(socket)?;
        let unusable = |error| Unusable {
            generation: generation(&message.payload),
            error,
        };
        if message.missing > 0 {
            return Ok(Err(unusable(io::Error::from_raw_os_error(libc::EMFILE))));
        }
        Ok(Self::decode(&message.payload, message.fds).map_err(unusable))
    }

    /// Returns the number of descriptors in the message, and of those open in addition while its configuration is built.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        match self {
            Self::Configure(bundle) => {
                let samples = if bundle.samples.is_some() { 2 } else { 0 };
                bundle.data.len() * 2 + bundle.listeners.len() + bundle.logs.len() + samples
            }
            Self::Reopen(logs) => logs.len(),
            Self::Quit | Self::Terminate => 0,
        }
    }

    /// The bytes of the message and its descriptors.
    ///
    /// # Errors
    /// None is known.
    pub fn encode(&self) -> io::Result<(Vec<u8>, Vec<BorrowedFd<'_>>)> {
        let mut fds = Vec::new();
        let mut bodies: &[(String, Arc<Vec<u8>>)] = &[];
        let wire = match self {
            Self::Configure(bundle) => {
                bodies = &bundle.files;
                Wire::Configure(Box::new(Description::new(bundle, &mut fds)))
            }
            Self::Reopen(logs) => Wire::Reopen(names(logs, &mut fds)),
            Self::Quit => Wire::Quit,
            Self::Terminate => Wire::Terminate,
        };
        let json = serde_json::to_vec(&wire)?;
        let texts: usize = bodies.iter().map(|(_, text)| text.len()).sum();
        let mut payload = Vec::with_capacity(LENGTH_BYTES + json.len() + texts);
        payload.extend((json.len() as u64).to_le_bytes());
        payload.extend(json);
        for (_, text) in bodies {
            payload.extend_from_slice(text);
        }
        Ok((payload, fds))
    }

    /// Reads a message from its bytes and descriptors.
    ///
    /// # Errors
    /// `InvalidData` if the bytes are no message.
    pub fn decode(payload: &[u8], fds: Vec<OwnedFd>) -> io::Result<Self> {
        let (wire, bodies) = parse(payload)?;
        let mut fds = fds.into_iter();
        let message = match wire {
            Wire::Configure(description) => {
                Self::Configure(Box::new(description.bundle(bodies, &mut fds)?))
            }
            Wire::Reopen(paths) => Self::Reopen(with_fds(paths, &mut fds)?),
            Wire::Quit => Self::Quit,
            Wire::Terminate => Self::Terminate,
        };
        if fds.next().is_some() {
            return Err(invalid());
        }
        Ok(message)
    }
}

impl FromWorker {
    /// Sends the message.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        fdpass::send_bytes(socket, &self.encode()?)
    }

    /// The bytes of the message: its length, no descriptors, JSON.
    ///
    /// # Errors
    /// None is known.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let json = match self {
            Self::Failed {
                generation,
                message,
            } => {
                let end = message.floor_char_boundary(REASON_BYTES_MAX);
                serde_json::to_vec(&Self::Failed {
                    generation: *generation,
                    message: message[..end].to_owned(),
                })?
            }
            other => serde_json::to_vec(other)?,
        };
        let mut bytes = fdpass::header(json.len(), 0).to_vec();
        bytes.extend(json);
        Ok(bytes)
    }

    /// Reads a message from the bytes at hand, with its length on the wire; none if it is not whole.
    ///
    /// # Errors
    /// `InvalidData` if the bytes are no message, are longer than `MESSAGE_BYTES_MAX` or announce descriptors.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        let (length, descriptors) = fdpass::parse_header(header)?;
        if length > MESSAGE_BYTES_MAX || descriptors > 0 {
            return Err(invalid());
        }
        match rest.get(..length) {
            Some(json) => Ok(Some((serde_json::from_slice(json)?, header.len() + length))),
            None => Ok(None),
        }
    }
}

/// The description of a message. A sent one borrows its lists, which may have 10,000 entries.
#[derive(Serialize, Deserialize)]
enum Wire<'a> {
    Configure(Box<Description<'a>>),
    Reopen(Vec<Cow<'a, str>>),
    Quit,
    Terminate,
}

/// The description of a message, and the bytes behind it.
fn parse(payload: &[u8]) -> io::Result<(Wire<'static>, &[u8])> {
    let (length, rest) = payload
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or_else(invalid)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| invalid())?;
    let (json, bodies) = rest.split_at_checked(length).ok_or_else(invalid)?;
    Ok((serde_json::from_slice(json)?, bodies))
}

/// The generation that a message configures; else 0.
fn generation(payload: &[u8]) -> u64 {
    match parse(payload) {
        Ok((Wire::Configure(description), _)) => description.generation,
        _ => 0,
    }
}

/// A bundle without its bytes and descriptors.
#[derive(Serialize, Deserialize)]
struct Description<'a> {
    generation: u64,
    step: Step,
    renewed: bool,
    conf_path: Cow<'a, str>,
    prefix: Cow<'a, str>,
    globals: Option<Cow<'a, str>>,
    error_log: Option<Cow<'a, str>>,
    access_log: Cow<'a, str>,
    files: Vec<(Cow<'a, str>, usize)>,
    globs: Cow<'a, [(String, Vec<String>)]>,
    data: Vec<Cow<'a, str>>,
    hosts: Cow<'a, [(String, Vec<IpAddr>)]>,
    listeners: Vec<Cow<'a, str>>,
    logs: Vec<Cow<'a, str>>,
    has_samples: bool,
}

impl<'a> Description<'a> {
    /// Adds the descriptors in their order.
    fn new(bundle: &'a Bundle, fds: &mut Vec<BorrowedFd<'a>>) -> Self {
        let files = bundle.files.iter();
        let (data, listeners) = (names(&bundle.data, fds), names(&bundle.listeners, fds));
        let logs = names(&bundle.logs, fds);
        if let Some(samples) = &bundle.samples {
            fds.extend([samples.socket.as_fd(), samples.figures.as_fd()]);
        }
        Self {
            generation: bundle.generation,
            step: bundle.step,
            renewed: bundle.renewed,
            conf_path: Cow::from(&bundle.conf_path),
            prefix: Cow::from(&bundle.prefix),
            globals: bundle.globals.as_ref().map(Cow::from),
            error_log: bundle.error_log.as_ref().map(Cow::from),
            access_log: Cow::from(&bundle.access_log),
            files: files
                .map(|(path, text)| (Cow::from(path), text.len()))
                .collect(),
            globs: Cow::from(&bundle.globs),
            data,
            hosts: Cow::from(&bundle.hosts),
            listeners,
            logs,
            has_samples: bundle.samples.is_some(),
        }
    }

    /// The bundle, with its bytes and descriptors.
    fn bundle(
        self,
        mut bodies: &[u8],
        fds: &mut impl Iterator<Item = OwnedFd>,
    ) -> io::Result<Bundle> {
        let mut files = Vec::with_capacity(self.files.len());
        for (path, length) in self.files {
            let (text, rest) = bodies.split_at_checked(length).ok_or_else(invalid)?;
            files.push((path.into_owned(), Arc::new(text.to_vec())));
            bodies = rest;
        }
        Ok(Bundle {
            generation: self.generation,
            step: self.step,
            renewed: self.renewed,
            conf_path: self.conf_path.into_owned(),
            prefix: self.prefix.into_owned(),
            globals: self.globals.map(Cow::into_owned),
            error_log: self.error_log.map(Cow::into_owned),
            access_log: self.access_log.into_owned(),
            files,
            globs: self.globs.into_owned(),
            data: with_fds(self.data, fds)?,
            hosts: self.hosts.into_owned(),
            listeners: with_fds(self.listeners, fds)?,
            logs: with_fds(self.logs, fds)?,
            samples: match self.has_samples {
                true => Some(SampleChannel {
                    socket: fds.next().ok_or_else(invalid)?,
                    figures: fds.next().ok_or_else(invalid)?,
                }),
                false => None,
            },
        })
    }
}

fn names<'a>(named: &'a [(String, OwnedFd)], fds: &mut Vec<BorrowedFd<'a>>) -> Vec<Cow<'a, str>> {
    fds.extend(named.iter().map(|(_, fd)| fd.as_fd()));
    named.iter().map(|(name, _)| Cow::from(name)).collect()
}

fn with_fds(
    names: Vec<Cow<'_, str>>,
    fds: &mut impl Iterator<Item = OwnedFd>,
) -> io::Result<Vec<(String, OwnedFd)>> {
    names
        .into_iter()
        .map(|name| Ok((name.into_owned(), fds.next().ok_or_else(invalid)?)))
        .collect()
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a control message")
}

/// The longest message of a worker: its reason for a refusal, in JSON.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The longest reason; a byte of it takes six at most.
const REASON_BYTES_MAX: usize = 10 << 10;
/// The length of the JSON part goes first, little-endian.
const LENGTH_BYTES: usize = 8;

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
