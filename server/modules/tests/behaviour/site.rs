//! A site in memory: a configuration, files, and requests that run through the phases without sockets.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use conf::{DataFile, Memory};
use engines::h1::{self, Event};
use engines::http::Chunk;
use server_base::clock::{Clock, mono_ms};
use server_base::errlog::{ErrorLog, Level, Sink};
use server_base::logs::Logs;
use server_base::offload::Offload;
use server_base::opened::OpenedLogs;
use server_base::periodic_task::TaskClock;
use server_base::waker::WakeKey;
use server_http::certificates::handshake;
use server_http::detached::{self, Discarded};
use server_http::exchange::{Client, Env, Exchange, Peer, Pulled, Queues, State, Tls};
use server_http::http::LocalHttp;
use server_http::{Cycle, LoadError, LoadOptions, phases};

use crate::context::context;
use crate::disk::{Disk, Node};
use crate::servers::Servers;

const MAIN_FILE: &str = "/etc/nginx/nginx.conf";
/// The file that a configuration may include, relative to the main file.
const INCLUDED_FILE: &str = "/etc/nginx/nets.conf";
const INCLUDED: &str = "127.0.0.0/8 included;\n";
/// Modification time of files, and time of requests, seconds since 1970.
pub(crate) const MODIFIED_S: i64 = 784_111_777;
pub(crate) const NOW_S: u64 = 784_111_877;
/// Time of requests by the monotonic clock.
const START_MS: u64 = 1000;

/// A configuration with the files it serves.
pub(crate) struct Site {
    generation: Rc<LocalHttp>,
    disk: Disk,
    /// Its upstream servers.
    pub(crate) servers: Servers,
    peer: Peer,
    /// The TLS connection that requests come over.
    tls: Option<Rc<Tls>>,
    /// Index of the port that requests arrive at.
    port: usize,
    wakes_early: bool,
    may_push: bool,
    any_names: bool,
    env: Env,
    /// The action whenever a request waits.
    meanwhile: fn(),
    /// The wall clock while requests are made, seconds since 1970.
    pub(crate) wall_s: u64,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status, 0 if the connection was closed without a response.
    pub(crate) status: u16,
    /// The fields, a line each.
    pub(crate) head: String,
    pub(crate) body: String,
    /// The bytes of the body.
    pub(crate) bytes: Vec<u8>,
    /// Trailer fields, a line each.
    pub(crate) trailers: String,
    /// Whether the connection is kept, and the time limit that the client sees.
    pub(crate) keep_alive: bool,
    pub(crate) keep_alive_hint_s: Option<u64>,
    /// Waiting time of the request, milliseconds.
    pub(crate) waited_ms: u64,
}

impl Answer {
    /// The value of a field, "" if there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default()
    }
}

impl Site {
    /// A site of one server with this content of its block.
    pub(crate) fn server(inner: &str) -> Self {
        Self::http(&format!(
            "server {{\nserver_name localhost;\nroot /www;\n{inner}\n}}"
        ))
    }

    /// A site with this content of the block `http`.
    pub(crate) fn http(inner: &str) -> Self {
        Self::http_with(inner, &[])
    }

    /// A site with a configuration that names data files.
    pub(crate) fn http_with(inner: &str, data: &[(&str, &[u8])]) -> Self {
        let cycle = load(inner, data)
            .unwrap_or_else(|refused| panic!("{}", refused.error.render(&refused.files)));
        let http = cycle.http.expect("a configuration with http");
        Self {
            generation: Rc::new(LocalHttp::new(http, 1)),
            disk: Disk::default(),
            servers: Servers::default(),
            peer: Peer::Inet(([192, 0, 2, 1], 4000).into()),
            tls: None,
            port: 0,
            wakes_early: false,
            may_push: false,
            any_names: false,
            env: Env::default(),
            meanwhile: || {},
            wall_s: NOW_S,
        }
    }

    /// The error of an invalid configuration with this content of the block `http`.
    pub(crate) fn refused(inner: &str) -> String {
        Self::refused_with(inner, &[])
    }

    /// The error of a configuration with data files.
    pub(crate) fn refused_with(inner: &str, data: &[(&str, &[u8])]) -> String {
        match load(inner, data) {
            Ok(_) => panic!("the configuration is accepted"),
            Err(refused) => refused.error.message().to_owned(),
        }
    }

    /// The error of a configuration that is refused, with its place and advice.
    pub(crate) fn refused_whole(inner: &str) -> String {
        match load(inner, &[]) {
            Ok(_) => panic!("the configuration is accepted"),
            Err(refused) => refused.error.render(&refused.files),
        }
    }

    /// The warnings about a configuration with this content of the block `http`.
    pub(crate) fn warnings_with(inner: &str, data: &[(&str, &[u8])]) -> Vec<String> {
        let cycle = load(inner, data)
            .unwrap_or_else(|refused| panic!("{}", refused.error.render(&refused.files)));
        cycle.warnings
    }

    /// With a file.
    #[must_use]
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.file_in_memory(path, text.as_bytes())
    }

    /// A site with a file of any bytes.
    #[must_use]
    pub(crate) fn file_in_memory(mut self, path: &str, bytes: &[u8]) -> Self {
        self.disk.add(path, Node::File(bytes.into(), None));
        self
    }

    /// With a file that is served from its descriptor.
    #[must_use]
    pub(crate) fn large_file(self, path: &str, text: &str) -> Self {
        self.file_of_bytes(path, text.as_bytes())
    }

    /// A site with a file of any bytes.
    #[must_use]
    pub(crate) fn file_of_bytes(mut self, path: &str, text: &[u8]) -> Self {
        self.disk.add_descriptor(path, text);
        self
    }

    /// Sets the peer of further requests: an address with a port, or a UNIX-domain socket.
    pub(crate) fn come_from(&mut self, peer: &str) -> &mut Self {
        self.peer = match peer {
            "unix:" => Peer::Unix,
            _ => Peer::Inet(peer.parse().expect("an address with a port")),
        };
        self
    }

    /// Wakes further waiting requests once before their time.
    pub(crate) fn wake_early(&mut self) -> &mut Self {
        self.wakes_early = true;
        self
    }

    /// Passes later offloaded work to this function, and calls the other one whenever a request waits.
    pub(crate) fn offload(&mut self, offload: Offload, meanwhile: fn()) -> &mut Self {
        self.env.offload = Some(offload);
        self.meanwhile = meanwhile;
        self
    }

    /// Permits any field names in further requests.
    pub(crate) fn allow_names(&mut self) -> &mut Self {
        self.any_names = true;
        self
    }

    /// From now on the client accepts pushes.
    pub(crate) fn allow_push(&mut self) -> &mut Self {
        self.may_push = true;
        self
    }

    /// From now on requests use a TLS connection with these parameters, to the port with this index.
    pub(crate) fn come_over(&mut self, port: usize, info: tls::Info) -> &mut Self {
        let http = &self.generation.http;
        let chosen = handshake(http, port, None, info.server_name.as_deref());
        let chosen = chosen.expect("its expressions are short");
        let config = http.tls[chosen.certificate].config.clone();
        let config = config.expect("the port speaks TLS");
        self.tls = Some(Rc::new(Tls::new(config.shared(), info)));
        self.port = port;
        self
    }

    /// The configuration.
    pub(crate) fn generation(&self) -> &Rc<LocalHttp> {
        &self.generation
    }

    /// With a directory.
    #[must_use]
    pub(crate) fn dir(mut self, path: &str) -> Self {
        self.disk.add(path, Node::Dir);
        self
    }

    /// `GET` over HTTP/1.1 with a host.
    pub(crate) fn get(&mut self, target: &str) -> Answer {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// `GET` with more fields, each with its line end.
    pub(crate) fn get_with(&mut self, target: &str, fields: &str) -> Answer {
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        ))
    }

    /// Sends a request given as text.
    pub(crate) fn send(&mut self, request: &str) -> Answer {
        let (mut x, waited_ms) = self.run(request);
        let mut clock = Clock::new(START_MS + waited_ms, NOW_S * 1000);
        let mut answer = answer(&mut x, &mut self.disk, &mut self.servers, &mut clock);
        answer.waited_ms = clock.mono_ms - START_MS;
        answer
    }

    /// Begins a request up to its response head; also returns its waiting time, milliseconds.
    pub(crate) fn begin_with(&mut self, request: &str) -> (Exchange, u64) {
        self.run(request)
    }

    /// Runs a `GET` up to its response head; it ends when the returned exchange is dropped.
    pub(crate) fn begin(&mut self, target: &str) -> Exchange {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.run(&request).0
    }

    /// Pulls the next chunk or mark of the body of an exchange.
    pub(crate) fn pull(&mut self, x: &mut Exchange) -> Pulled {
        self.pull_within(x, &Cell::new(u64::MAX))
    }

    /// Pulls a body with a budget of bytes for its stages.
    pub(crate) fn pull_within(&mut self, x: &mut Exchange, budget: &Cell<u64>) -> Pulled {
        let clock = Clock::new(START_MS, NOW_S * 1000);
        let (mut logs, env) = (Logs::default(), Env::default());
        x.pull_marked(&mut context(
            &mut self.disk,
            &mut self.servers,
            &clock,
            &mut logs,
            &env,
            budget,
            &Queues::default(),
        ))
    }

    /// Runs a request up to its response head; returns its waiting time too.
    fn run(&mut self, request: &str) -> (Exchange, u64) {
        let mut engine = h1::Conn::new(Rc::new(h1::Settings {
            underscores_in_headers: self.any_names,
            ignore_invalid_headers: !self.any_names,
            ..h1::Settings::default()
        }));
        engine.receive(request.as_bytes());
        let Some(Event::Head(head)) = engine.event() else {
            panic!("no head in {request:?}")
        };
        let client = Client {
            peer: self.peer,
            local: Some(([192, 0, 2, 2], 80).into()),
            connection: 1,
            requests: 1,
            since_ms: 0,
            pipelined: false,
            may_push: self.may_push,
            offers: None,
            debug: false,
            socket: server_base::transport::NO_SOCKET,
            wake: WakeKey::default(),
        };
        let mut clock = Clock::new(START_MS, self.wall_s * 1000);
        let (mut logs, env) = (Logs::default(), self.env.clone());
        let queues = Queues::default();
        let mut x = Exchange::new(Rc::clone(&self.generation), client);
        let mut wakes_early = self.wakes_early;
        let mut ended = false;
        x.begin(Rc::clone(&self.generation), self.port, client, &clock);
        x.tls.clone_from(&self.tls);
        x.head = head;
        loop {
            let budget = Cell::new(u64::MAX);
            let mut cx = context(
                &mut self.disk,
                &mut self.servers,
                &clock,
                &mut logs,
                &env,
                &budget,
                &queues,
            );
            match x.progress.state {
                State::Waiting(_) => phases::resume(&mut x, &mut cx),
                _ => phases::begin(&mut x, &mut cx),
            }
            match x.progress.state {
                State::Waiting(_) if x.awaits_body() && !ended => {
                    while let Some(event) = engine.event() {
                        match event {
                            Event::Data(bytes) => x.deliver_body(bytes, &mut cx),
                            Event::BodyEnd => {
                                ended = true;
                                x.end_body(&mut cx);
                            }
                            _ => {}
                        }
                    }
                }
                State::Waiting(_) if std::mem::take(&mut wakes_early) => {}
                State::Waiting(wait) if wait.until_ms == u64::MAX => {
                    // Only its waker resumes it.
                    while queues.wakers.is_empty() {
                        assert!(clock.mono_ms < START_MS + WAKE_MS_MAX, "nobody wakes it");
                        clock.set(clock.mono_ms + 1, NOW_S * 1000);
                        (self.meanwhile)();
                        queues.wakers.receive();
                    }
                    queues.wakers.take();
                }
                State::Waiting(wait) => {
                    clock.set(wait.until_ms, NOW_S * 1000);
                    (self.meanwhile)();
                }
                _ => {
                    let waited_ms = clock.mono_ms - START_MS;
                    self.run_detached(&queues, &clock);
                    return (x, waited_ms);
                }
            }
        }
    }

    /// Runs the detached requests that a request has started, to their ends.
    fn run_detached(&mut self, queues: &Queues, clock: &Clock) {
        let (mut logs, env, budget) = (Logs::default(), self.env.clone(), Cell::new(u64::MAX));
        for mut request in queues.take_detached() {
            let (files, servers) = (&mut self.disk, &mut self.servers);
            let mut cx = context(files, servers, clock, &mut logs, &env, &budget, queues);
            let done = detached::turn(&mut request, &mut cx);
            let Discarded::Ended(end) = done else {
                panic!("{:?} waits", request.exchange.shown_uri().to_string());
            };
            detached::end(&mut request, &mut cx, end);
        }
    }

    /// Runs the periodic tasks at this time; returns the milliseconds until each is due again.
    pub(crate) fn run_tasks(&self, now_s: i64, log: &ErrorLog) -> Vec<Option<u64>> {
        let all = &self.generation.http.periodic_tasks;
        let clock = TaskClock {
            mono_ms: &mono_ms,
            unix_s: now_s,
        };
        all.iter().map(|task| task.run(&clock, log)).collect()
    }

    /// Returns the lines of the error log during a function, from `info` on; once per site.
    pub(crate) fn logged(&mut self, meanwhile: impl FnOnce(&mut Self)) -> String {
        let name = format!(
            "firstbyte-log-{}-{:p}",
            std::process::id(),
            &raw const *self
        );
        let place = std::env::temp_dir().join(name);
        let file = File::create(&place).expect("the temporary directory is writable");
        let log = ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Info)]);
        self.generation.attach_logs(OpenedLogs::default(), &log);
        meanwhile(self);
        let said = fs::read_to_string(&place).expect("the file was made above");
        fs::remove_file(place).expect("the file was made above");
        said
    }
}

/// The longest time for which tests wait for a waker.
const WAKE_MS_MAX: u64 = 100;

fn load(inner: &str, data: &[(&str, &[u8])]) -> Result<Cycle, Box<LoadError>> {
    let text = format!("events {{}}\nhttp {{\n{inner}\n}}\n");
    let options = LoadOptions {
        conf_path: PathBuf::from(MAIN_FILE),
        prefix: PathBuf::from("/usr/share/nginx"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/var/log/nginx/access.log"),
    };
    let mut source = Memory::default()
        .with_file(MAIN_FILE, text)
        .with_file(INCLUDED_FILE, INCLUDED);
    let both = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().expect("an address"));
    source.add_host("two.test", both.to_vec());
    for (path, bytes) in data {
        source.add_opened(*path, DataFile::from(*bytes));
        source.add_file(*path, *bytes);
    }
    server_http::load(source, &options, server_modules::MODULES)
}

fn answer(x: &mut Exchange, disk: &mut Disk, servers: &mut Servers, clock: &mut Clock) -> Answer {
    let (mut logs, env) = (Logs::default(), Env::default());
    let mut answer = Answer {
        status: 0,
        head: String::new(),
        body: String::new(),
        bytes: Vec::new(),
        trailers: String::new(),
        keep_alive: x.response.head.keep_alive,
        keep_alive_hint_s: x.response.head.keep_alive_hint_s,
        waited_ms: 0,
    };
    match x.progress.state {
        State::Responding => {}
        State::Aborted => return answer,
        other => panic!("left in state {other:?}"),
    }
    answer.status = x.response.head.status;
    answer.head = String::from_utf8_lossy(&x.response.head.arena).replace('\r', "");
    loop {
        let (budget, queues) = (Cell::new(u64::MAX), Queues::default());
        let mut cx = context(disk, servers, clock, &mut logs, &env, &budget, &queues);
        match x.pull(&mut cx) {
            Pulled::BudgetSpent => {}
            Pulled::Pending => {
                let until_ms = x.progress.pull_wait.map_or(0, |wait| wait.until_ms);
                assert!(until_ms > clock.mono_ms, "it waits for something");
                clock.set(until_ms, NOW_S * 1000);
            }
            Pulled::Chunk(Chunk::File(range)) => {
                let bytes = cx.files.read(&range).expect("the range lies in the file");
                answer.bytes.extend_from_slice(&bytes);
            }
            Pulled::Chunk(chunk) => answer.bytes.extend_from_slice(chunk.bytes()),
            Pulled::End => break,
            Pulled::Broken => panic!("the body breaks off"),
        }
    }
    answer.body = String::from_utf8_lossy(&answer.bytes).into_owned();
    if let Some(on_end) = x.response.on_end {
        let (budget, queues) = (Cell::new(u64::MAX), Queues::default());
        let mut cx = context(disk, servers, clock, &mut logs, &env, &budget, &queues);
        on_end(x, &mut cx);
        answer.trailers = String::from_utf8_lossy(&x.reply.trailers.arena).replace('\r', "");
    }
    answer
}
