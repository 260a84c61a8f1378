//! Test bench of the core: a configuration in memory, the world around an exchange, and one module with handlers
//! that a test controls.
//!
//! A test passes [`World::run`] a request and reactions by the name of a handler. A handler without a reaction
//! declines. The last one of the content phase answers according to the URI: `/say/TEXT`, `/late/MS/TEXT` and so
//! on, see `say`.

#[path = "testing/disk_tests.rs"]
mod disk;
#[path = "testing/page_tests.rs"]
mod page;
#[path = "testing/response_tests.rs"]
mod response;
#[path = "testing/servers_tests.rs"]
pub(crate) mod servers;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use conf::{Arity, Contexts, DirectiveDef, Memory};
use engines::h1::{self, Event};
use engines::http::Chunk;
use server_base::clock::Clock;
use server_base::errlog::{ErrorLog, Level, Sink};
use server_base::logs::Logs;
use server_base::opened::OpenedLogs;
use server_base::transport::NO_SOCKET;
use server_base::waker::{WakeKey, WakeQueue};

use crate::assemble::{ConfigBuilder, Cycle, LoadError, LoadOptions, load};
use crate::exchange::{Client, Ctx, Env, Exchange, Peer, Pulled, Queues, State, Wait};
use crate::http::{Http, LocalHttp};
use crate::module::{Access, Content, Handler, Module, Step};
use crate::{phases, reply};

use disk::nameless;
pub(crate) use disk::{Disk, file_of};
pub(crate) use page::{Holding, Page, Part, Parts, begun, page, text, whole};
pub(crate) use response::{body, status};

/// A configuration, and the environment of the core.
pub(crate) struct World {
    pub(crate) generation: Rc<LocalHttp>,
    pub(crate) clock: Clock,
    /// Bytes left in the budget of the stages.
    pub(crate) budget: Cell<u64>,
    pub(crate) files: Disk,
    logs: Logs,
    env: Env,
    pub(crate) queues: Queues,
    pub(crate) connector: servers::Servers,
    /// The error log, and how much of it was read.
    log: File,
    read: u64,
}

/// A request that ran until it had a response, or had to wait.
pub(crate) struct Ran {
    pub(crate) x: Exchange,
    /// The handlers that ran, in order.
    ran: Rc<RefCell<Vec<&'static str>>>,
}

impl Ran {
    /// The handlers that ran since the last call.
    pub(crate) fn handlers(&self) -> String {
        std::mem::take(&mut *self.ran.borrow_mut()).join(" ")
    }

    /// Has handlers react from here on: those of subrequests, since its own have run.
    pub(crate) fn react(&mut self, reactions: &[(&'static str, Reaction)]) {
        let script = self.x.extensions.get_mut::<Script>().expect("it was begun");
        script.reactions.extend(reactions.iter().copied());
    }
}

/// A directive of a test's module.
pub(crate) const fn row(
    name: &'static str,
    arity: Arity,
    apply: conf::Apply<ConfigBuilder>,
) -> DirectiveDef<ConfigBuilder> {
    DirectiveDef {
        name,
        doc: "",
        syntax: "",
        default: "",
        contexts: Contexts::HTTP,
        arity,
        block: false,
        apply,
    }
}

/// The action of a handler of [`PROBE`] when it runs.
pub(crate) type Reaction = fn(&mut Exchange, &mut Ctx<'_>) -> Outcome;

/// The decision of a handler, in the words of every kind of phase.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Next,
    Allow,
    Status(u16),
    Sent,
    Restart,
    Wait,
}

impl World {
    /// With these directives in the block `server` of a configuration.
    pub(crate) fn new(server: &str) -> Self {
        Self::http(&format!("server {{ server_name localhost; {server} }}"))
    }

    /// With these directives in the block `http`.
    pub(crate) fn http(inner: &str) -> Self {
        Self::with(inner, &[&PROBE])
    }

    /// A world like [`World::http`] with modules of the test's own.
    pub(crate) fn with(inner: &str, modules: &'static [&'static Module]) -> Self {
        let cycle = loaded(inner, modules)
            .unwrap_or_else(|refused| panic!("{}", refused.error.render(&refused.files)));
        let http = cycle.http.expect("a configuration with http");
        let log = nameless();
        let sink = log.try_clone().expect("a descriptor is free");
        let error_log = ErrorLog::new(vec![Sink::file(Arc::new(sink), Level::Info)]);
        http.attach_logs(OpenedLogs::default(), &error_log);
        let wakers = WakeQueue::default();
        Self {
            generation: Rc::new(LocalHttp::new(http, 1)),
            clock: Clock::new(START_MS, START_UNIX_MS),
            budget: Cell::new(u64::MAX),
            files: Disk::default(),
            logs: Logs::default(),
            env: Env::default(),
            connector: servers::Servers::new(&wakers),
            queues: Queues::new(wakers, WakeKey::default()),
            log,
            read: 0,
        }
    }

    pub(crate) fn cx(&mut self) -> Ctx<'_> {
        Ctx {
            files: &mut self.files,
            connector: &mut self.connector,
            clock: &self.clock,
            logs: &mut self.logs,
            env: &self.env,
            budget: &self.budget,
            queues: &self.queues,
        }
    }

    /// Lets time go on.
    pub(crate) fn pass(&mut self, ms: u64) {
        let now_ms = self.clock.mono_ms + ms;
        self.clock.set(now_ms, START_UNIX_MS + now_ms - START_MS);
    }

    /// An exchange with this head, not begun.
    pub(crate) fn exchange(&self, head: &str) -> Exchange {
        let mut engine = h1::Conn::new(Rc::default());
        engine.receive(head.as_bytes());
        let Some(Event::Head(head)) = engine.event() else {
            panic!("no head in {head:?}")
        };
        let client = Client {
            peer: Peer::Inet(([192, 0, 2, 1], 4000).into()),
            local: Some(([192, 0, 2, 2], 80).into()),
            connection: 1,
            requests: 1,
            since_ms: START_MS,
            pipelined: false,
            may_push: false,
            offers: None,
            debug: false,
            socket: NO_SOCKET,
            wake: WakeKey::default(),
        };
        let mut x = Exchange::new(Rc::clone(&self.generation), client);
        x.begin(Rc::clone(&self.generation), 0, client, &self.clock);
        x.head = head;
        phases::place(&mut x);
        x
    }

    /// A `GET` that has its response head.
    pub(crate) fn get(&mut self, target: &str) -> Exchange {
        self.run(&get(target), &[]).x
    }

    /// A request that runs until it has a response or waits; each reaction is used once, those of a handler in order.
    pub(crate) fn run(&mut self, head: &str, reactions: &[(&'static str, Reaction)]) -> Ran {
        let x = self.exchange(head);
        self.begin(x, reactions)
    }

    /// Runs an exchange that was changed before, as [`World::run`] does for a head.
    pub(crate) fn begin(&mut self, mut x: Exchange, reactions: &[(&'static str, Reaction)]) -> Ran {
        let ran = watch(&mut x, reactions);
        phases::begin(&mut x, &mut self.cx());
        Ran { x, ran }
    }

    /// Lets an exchange that waits go on.
    pub(crate) fn resume(&mut self, x: &mut Exchange) {
        phases::resume(x, &mut self.cx());
    }

    /// All of a body that can be pulled now, marks as `|`, and how the pulling ended.
    pub(crate) fn pull(&mut self, x: &mut Exchange) -> (String, &'static str) {
        let mut text = String::new();
        loop {
            match x.pull_marked(&mut self.cx()) {
                Pulled::Chunk(Chunk::Flush) => text.push('|'),
                Pulled::Chunk(chunk) => text.push_str(&shown(&chunk)),
                Pulled::Pending => return (text, "later"),
                Pulled::BudgetSpent => return (text, "spent"),
                Pulled::End => return (text, "end"),
                Pulled::Broken => return (text, "broken"),
            }
        }
    }

    /// The error log's lines since the last call, without the times.
    pub(crate) fn said(&mut self) -> String {
        let mut text = vec![0; 64 << 10];
        let n = self.log.read_at(&mut text, self.read).unwrap_or(0);
        self.read += n as u64;
        String::from_utf8_lossy(&text[..n]).into_owned()
    }
}

/// Has handlers react to an exchange; returns those that have run, in order.
pub(crate) fn watch(
    x: &mut Exchange,
    reactions: &[(&'static str, Reaction)],
) -> Rc<RefCell<Vec<&'static str>>> {
    let ran = Rc::default();
    x.extensions.push(Script {
        ran: Rc::clone(&ran),
        reactions: reactions.iter().copied().collect(),
    });
    ran
}

/// The error of a refused configuration, with these directives in the block `http`.
pub(crate) fn refused(inner: &str, modules: &'static [&'static Module]) -> String {
    match loaded(inner, modules) {
        Ok(_) => panic!("the configuration is accepted"),
        Err(refused) => refused.error.message().to_owned(),
    }
}

/// The block `http` with this text, as a configuration.
pub(crate) fn http_of(inner: &str) -> Http {
    let http = loaded(inner, &[]).ok().and_then(|cycle| cycle.http);
    let http = http.and_then(Arc::into_inner);
    http.expect("the configuration is sound, and nobody else has it")
}

fn loaded(inner: &str, modules: &'static [&'static Module]) -> Result<Cycle, Box<LoadError>> {
    let options = LoadOptions {
        conf_path: PathBuf::from("/nginx.conf"),
        prefix: PathBuf::from("/"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/access.log"),
    };
    let text = format!("events {{}} http {{ {inner} }}");
    load(
        Memory::default().with_file("/nginx.conf", text),
        &options,
        modules,
    )
}

/// A piece of a body as text; a range of a file as its offset and length.
fn shown(chunk: &Chunk) -> String {
    match chunk {
        Chunk::File(range) => format!("[{}+{}]", range.offset, range.len),
        memory => String::from_utf8_lossy(memory.bytes()).into_owned(),
    }
}

/// The head of a `GET`.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// When tests begin, by both clocks.
pub(crate) const START_MS: u64 = 1000;
const START_UNIX_MS: u64 = 784_111_777_000;

/// The reactions of an exchange's handlers; its subrequests borrow it with the extensions.
struct Script {
    ran: Rc<RefCell<Vec<&'static str>>>,
    reactions: VecDeque<(&'static str, Reaction)>,
}

fn react(name: &'static str, x: &mut Exchange, cx: &mut Ctx<'_>) -> Outcome {
    let Some(script) = x.extensions.get_mut::<Script>() else {
        return Outcome::Next;
    };
    script.ran.borrow_mut().push(name);
    let at = script.reactions.iter().position(|(of, _)| *of == name);
    let reaction = at.and_then(|at| script.reactions.remove(at));
    reaction.map_or(Outcome::Next, |(_, reaction)| reaction(x, cx))
}

fn step(name: &'static str, x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    match react(name, x, cx) {
        Outcome::Next | Outcome::Allow => Step::Next,
        Outcome::Status(status) => Step::Status(status),
        Outcome::Sent => Step::Sent,
        Outcome::Restart => Step::Restart,
        Outcome::Wait => Step::Wait,
    }
}

fn access(name: &'static str, x: &mut Exchange, cx: &mut Ctx<'_>) -> Access {
    match react(name, x, cx) {
        Outcome::Allow => Access::Allow,
        Outcome::Status(status) => Access::Deny(status),
        Outcome::Wait => Access::Wait,
        Outcome::Next | Outcome::Sent | Outcome::Restart => Access::NoOpinion,
    }
}

fn content(name: &'static str, x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    match react(name, x, cx) {
        Outcome::Next | Outcome::Allow => Content::Declined,
        Outcome::Status(status) => Content::Status(status),
        Outcome::Sent => Content::Sent,
        Outcome::Restart => Content::Restart,
        Outcome::Wait => Content::Wait,
    }
}

/// Answers according to the URI, unless another handler has; directories are left to the core.
fn say(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    match content("say", x, cx) {
        Content::Declined => {}
        done => return done,
    }
    let uri = String::from_utf8_lossy(&x.target.uri).into_owned();
    let mut words = uri.split('/').skip(1);
    let (what, first, second) = (words.next(), words.next(), words.next());
    let first = first.unwrap_or_default();
    let chunk = match what.unwrap_or_default() {
        _ if uri.ends_with('/') => return Content::Declined,
        "none" => return Content::Declined,
        "drop" => return Content::Status(reply::CLOSE_WITHOUT_RESPONSE),
        "say" => of_text(first),
        "big" => Chunk::Owned(vec![b'x'; first.parse().expect("a number")]),
        "file" => file_of(first.as_bytes()),
        "empty" => of_text(""),
        "late" => {
            let until_ms = x.started_ms + first.parse::<u64>().expect("a number");
            if cx.clock.mono_ms < until_ms {
                x.progress.state = State::Waiting(Wait::until(until_ms));
                return Content::Wait;
            }
            of_text(second.unwrap_or_default())
        }
        "nest" => {
            let deeper = first.parse::<u32>().expect("a number").checked_sub(1);
            x.add_around(None, deeper.map(|n| format!("/nest/{n}").into_bytes()));
            of_text(first)
        }
        _ => of_text(&uri),
    };
    x.reply.status = 200;
    x.reply.content_type.set(b"text/plain");
    reply::send(x, cx, Some(chunk));
    Content::Sent
}

fn of_text(text: &str) -> Chunk {
    Chunk::Owned(text.as_bytes().to_vec())
}

/// The module of the tests. Rewrite and access have two handlers, to test their order.
pub(crate) const PROBE: Module = Module {
    name: "probe",
    directives: &[&[DirectiveDef {
        name: "probe_handler",
        contexts: Contexts::LOCATION,
        arity: Arity::NOARGS,
        block: false,
        default: "",
        doc: "Gives a location a content handler of its own.",
        syntax: "",
        apply: |b, _| {
            b.set_handler(|x, cx| content("handler", x, cx));
            Ok(())
        },
    }]],
    handlers: &[
        Handler::PostRead(|x, cx| step("post_read", x, cx)),
        Handler::ServerRewrite(|x, cx| step("server_rewrite", x, cx)),
        Handler::Rewrite(|x, cx| step("rewrite", x, cx)),
        Handler::Rewrite(|x, cx| step("rewrite_2", x, cx)),
        Handler::PreAccess(|x, cx| step("pre_access", x, cx)),
        Handler::Access(|x, cx| access("access", x, cx)),
        Handler::Access(|x, cx| access("access_2", x, cx)),
        Handler::PreContent(|x, cx| step("pre_content", x, cx)),
        Handler::Content(|x, cx| content("content", x, cx)),
        Handler::Content(say),
        Handler::Log(|x, cx| {
            react("log", x, cx);
        }),
    ],
    ..Module::EMPTY
};
