//! A scripted upstream server: a list of steps for each request, or for each connection.
//!
//! Each connection has a thread. All received bytes are recorded, so that a test can compare them. The steps define the
//! response byte by byte, correct or not. A connection stays open until a step or the peer ends it. Deliberately
//! absent: any repair of a response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use crate::received::{Inbox, Request};
use crate::server::{Builder, Server};
use crate::wait::{DEADLINE, pause, wait_until};

/// Next action of a scripted server.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends the letter `x` this many times, without having them all in memory.
    Fill(usize),
    /// Waits for this many milliseconds.
    Wait(u64),
    /// Waits until the test opens the gate.
    Gate(Gate),
    /// Reads the body of the request, if the script began at its head.
    ReadBody,
    /// Reads this many bytes, whatever they are.
    Read(usize),
    /// Reads up to these bytes and past them.
    Until(Vec<u8>),
    /// Reads up to these bytes and past them, and keeps them for [`Backend::kept`].
    Keep(Vec<u8>),
    /// Reads and records the head of a request, in the script of a connection.
    ReadHead,
    /// Sends received bytes back until the peer ends its direction.
    Echo,
    /// Ends this direction; the script continues.
    HalfClose,
    /// Closes the connection. The kernel sends a reset if unread bytes are left.
    Close,
    /// Resets the connection.
    Reset,
    /// Does nothing until the peer closes.
    Hold,
}

/// Gate that holds steps back until the test opens it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets everybody through from here on.
    pub fn open(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let closed = |open: &mut bool| !*open;
        let wait = self
            .0
            .1
            .wait_timeout_while(lock(&self.0.0), DEADLINE, closed);
        drop(wait);
    }
}

/// Script of each request or connection.
type Script = dyn Fn(&Request) -> Vec<Step> + Send + Sync;

/// The event that starts a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// The connection is accepted.
    Accepted,
    /// The head of a request has come.
    Head,
    /// A request has come whole.
    Whole,
}

/// A running server; dropping it closes everything.
#[derive(Debug)]
pub struct Backend {
    place: BackendAddress,
    shared: Arc<Shared>,
}

#[derive(Clone, Debug)]
enum BackendAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    accepted: AtomicUsize,
    open: AtomicUsize,
    kept: Mutex<Vec<u8>>,
    stopped: AtomicBool,
    wires: Mutex<Vec<Arc<Wire>>>,
}

/// A socket of either kind.
#[derive(Debug)]
pub(crate) enum Wire {
    /// Over TCP.
    Tcp(TcpStream),
    /// Of the UNIX domain.
    Unix(UnixStream),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Backend {
    /// Asks for steps when a request has come whole.
    #[must_use]
    pub fn answering(script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::listening(tcp(0), Begins::Whole, script)
    }

    /// Starts a server on a port that the test has reserved.
    #[must_use]
    pub fn answering_at(
        port: u16,
        script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::listening(tcp(port), Begins::Whole, script)
    }

    /// Starts a server on a socket of the UNIX domain.
    ///
    /// # Panics
    /// When it cannot be bound.
    #[must_use]
    pub fn answering_on(
        path: &Path,
        script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).expect("the folder is the test's");
        crate::dir::set_mode(path, 0o777);
        let place = BackendAddress::Unix(path.to_owned());
        Self::listening((Listener::Unix(listener), place), Begins::Whole, script)
    }

    /// Asks for steps when the head of a request has come.
    #[must_use]
    pub fn at_heads(script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::listening(tcp(0), Begins::Head, script)
    }

    /// Asks for the steps of a whole connection when it is accepted, by its number, the first being 1.
    #[must_use]
    pub fn scripted(script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::listening(tcp(0), Begins::Accepted, move |r| script(r.connection))
    }

    /// Sends these bytes as the response to each request and closes.
    #[must_use]
    pub fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::answering(move |_| vec![Step::Send(bytes.clone()), Step::Close])
    }

    fn listening(
        (listener, place): (Listener, BackendAddress),
        begins: Begins,
        script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let script: Arc<Script> = Arc::new(script);
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &of_thread, begins, &script));
        Self { place, shared }
    }

    /// Its address for `proxy_pass` and `server`, without `http://`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            BackendAddress::Tcp(address) => address.to_string(),
            BackendAddress::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// A server under test that passes everything on, with `directives` beside `proxy_pass`.
    #[must_use]
    pub fn proxied(&self, directives: &str) -> Builder {
        let pass = self.name();
        Server::http(&format!(
            "server {{ listen 127.0.0.1:%%PORT%%; http2 on; client_max_body_size 0;
                 location / {{ proxy_pass http://{pass}; {directives} }} }}"
        ))
    }

    /// Proxies by way of a group, which keeps its connections; one worker, so that there is one pool.
    #[must_use]
    pub fn grouped(&self, group: &str, directives: &str) -> Builder {
        let pass = self.name();
        Server::http_with(
            "worker_processes 1;",
            &format!(
                "upstream behind {{ server {pass}; {group} }}
                 server {{ listen 127.0.0.1:%%PORT%%; http2 on; client_max_body_size 0;
                     location / {{ proxy_pass http://behind; {directives} }} }}"
            ),
        )
    }

    /// Requests so far, in the order in which heads came.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// The latest request, once it is whole.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[track_caller]
    pub fn latest(&self) -> Request {
        wait_until("the server behind has a whole request", || {
            lock(&self.shared.requests).last().is_some_and(|r| r.whole)
        });
        self.requests().pop().expect("it was there")
    }

    /// Bytes read by [`Step::Keep`] so far, of all connections.
    #[must_use]
    pub fn kept(&self) -> Vec<u8> {
        lock(&self.shared.kept).clone()
    }

    /// How many requests have come, whole or not.
    #[must_use]
    pub fn request_count(&self) -> usize {
        lock(&self.shared.requests).len()
    }

    /// How many connections have been accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // A connection wakes the thread that accepts.
        let _ = match &self.place {
            BackendAddress::Tcp(address) => TcpStream::connect(address).map(drop),
            BackendAddress::Unix(path) => UnixStream::connect(path).map(drop),
        };
        for wire in lock(&self.shared.wires).drain(..) {
            wire.shut(Shutdown::Both);
        }
    }
}

/// A response with `Content-Length`.
#[must_use]
pub fn ok(body: impl AsRef<[u8]>) -> Vec<Step> {
    answer("200 OK", &[], body)
}

/// A response with further header lines, each without its line end.
#[must_use]
pub fn answer(status: &str, lines: &[&str], body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{lines}Content-Length: {length}\r\n\r\n");
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// Sends text.
#[must_use]
pub fn send(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

/// A piece of a chunked body.
#[must_use]
pub fn chunk(bytes: impl AsRef<[u8]>) -> Step {
    let bytes = bytes.as_ref();
    let size = format!("{:x}\r\n", bytes.len());
    Step::Send([size.as_bytes(), bytes, b"\r\n"].concat())
}

fn tcp(port: u16) -> (Listener, BackendAddress) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let address = listener.local_addr().expect("it is bound");
    (Listener::Tcp(listener), BackendAddress::Tcp(address))
}

fn accept(listener: &Listener, shared: &Arc<Shared>, begins: Begins, script: &Arc<Script>) {
    loop {
        let wire = match listener {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| {
                let _ = stream.set_nodelay(true);
                Wire::Tcp(stream)
            }),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Wire::Unix(stream)),
        };
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(wire) = wire else { continue };
        let wire = Arc::new(wire);
        lock(&shared.wires).push(Arc::clone(&wire));
        let connection = shared.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        shared.open.fetch_add(1, Ordering::SeqCst);
        let (shared, script) = (Arc::clone(shared), Arc::clone(script));
        // The stack is small: there may be thousands.
        let thread = thread::Builder::new().stack_size(256 << 10);
        let served = thread.spawn(move || {
            let mut inbox = Inbox::new(Arc::clone(&wire), connection);
            let _ = serve(&mut inbox, &shared, begins, &*script);
            drop(inbox);
            lock(&shared.wires).retain(|kept| !Arc::ptr_eq(kept, &wire));
            // The last owner closes the socket before it counts as closed.
            drop(wire);
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
        served.expect("there is room for a thread");
    }
}

/// Serves a connection until a step or the peer ends it.
fn serve(
    inbox: &mut Inbox,
    shared: &Shared,
    begins: Begins,
    script: &Script,
) -> io::Result<Option<()>> {
    if begins == Begins::Accepted {
        let first = Request::of_connection(inbox.connection());
        play(inbox, shared, script(&first))?;
        return Ok(None);
    }
    loop {
        let Some(mut request) = inbox.head()? else {
            return Ok(None);
        };
        let at = keep(shared, &request);
        if begins == Begins::Whole {
            let outcome = inbox.body(&mut request);
            lock(&shared.requests)[at] = request.clone();
            outcome?;
        }
        if play(inbox, shared, script(&request))?.is_none() {
            return Ok(None);
        }
    }
}

/// Does the steps; `None` when the connection is over.
fn play(inbox: &mut Inbox, shared: &Shared, steps: Vec<Step>) -> io::Result<Option<()>> {
    for step in steps {
        match step {
            Step::Send(bytes) => inbox.wire().write(&bytes)?,
            Step::Fill(count) => {
                let piece = [b'x'; 64 << 10];
                for from in (0..count).step_by(piece.len()) {
                    let len = piece.len().min(count - from);
                    inbox.wire().write(&piece[..len])?;
                }
            }
            Step::Wait(time_ms) => pause(Duration::from_millis(time_ms)),
            Step::Gate(gate) => gate.wait(),
            Step::Read(count) => drop(inbox.take(count)?),
            Step::Until(mark) => drop(inbox.past(&mark)?),
            Step::Keep(mark) => {
                let bytes = inbox.past(&mark)?;
                lock(&shared.kept).extend(bytes);
            }
            Step::ReadHead => {
                if let Some(request) = inbox.head()? {
                    keep(shared, &request);
                }
            }
            Step::ReadBody => read_body(inbox, shared)?,
            Step::Echo => inbox.echo()?,
            Step::HalfClose => inbox.wire().shut(Shutdown::Write),
            Step::Close => return Ok(None),
            Step::Reset => {
                inbox.wire().reset_when_closed();
                return Ok(None);
            }
            Step::Hold => inbox.until_closed(),
        }
    }
    Ok(Some(()))
}

fn keep(shared: &Shared, request: &Request) -> usize {
    let mut requests = lock(&shared.requests);
    requests.push(request.clone());
    requests.len() - 1
}

/// Reads the body of the latest request of this connection.
fn read_body(inbox: &mut Inbox, shared: &Shared) -> io::Result<()> {
    let connection = inbox.connection();
    let at = {
        let requests = lock(&shared.requests);
        requests.iter().rposition(|r| r.connection == connection)
    };
    let Some(at) = at else { return Ok(()) };
    let mut request = lock(&shared.requests)[at].clone();
    let outcome = inbox.body(&mut request);
    lock(&shared.requests)[at] = request;
    outcome
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    pub(crate) fn read(&self, piece: &mut [u8]) -> io::Result<usize> {
        loop {
            let outcome = match self {
                Self::Tcp(stream) => (&mut &*stream).read(piece),
                Self::Unix(stream) => (&mut &*stream).read(piece),
            };
            match outcome {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => (&mut &*stream).write_all(bytes),
            Self::Unix(stream) => (&mut &*stream).write_all(bytes),
        }
    }

    fn shut(&self, how: Shutdown) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }

    fn reset_when_closed(&self) {
        if let Self::Tcp(stream) = self {
            let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}
