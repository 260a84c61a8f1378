//! Servers behind the one under test: a connector with attempts that a test answers by hand, and a location that
//! passes requests on to them.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive, DirectiveDef};
use engines::http::{self, BodyLength, Chunk, Fields, ResponseHead};
use server_base::files::TempDir;
use server_base::name_servers::NameServers;
use server_base::waker::{WakeQueue, Waker};
use server_upstream::balance::Method;
use server_upstream::connector::{Connector, Lookup};
use server_upstream::protocol::{HTTP1, ProtocolSpec};
use server_upstream::request::{
    Failure, RequestSpec, UpstreamCall, UpstreamError, UpstreamEvent, UpstreamRequest, attempt,
};
use server_upstream::route::{Route, Timeouts, UpstreamAddr};

use super::PROBE;
use crate::assemble::ConfigBuilder;
use crate::exchange::{Ctx, Exchange};
use crate::http::Http;
use crate::module::Module;
use crate::settings_set::Conf;
use crate::upstream::conf::{
    Buffering, NextUpstream, PassedRequest, RequestBody, ResponseFields, Retry,
};
use crate::upstream::group;
use crate::upstream::{self, Gateway, Outgoing, Target, UpstreamConf, Verdict};
use server_upstream::group::{GroupId, Groups, Server};

/// A connector that keeps its attempts until a test answers them.
pub(crate) struct Servers {
    pub(crate) calls: Vec<Call>,
    wakers: WakeQueue,
}

/// An attempt, from the server's side.
pub(crate) struct Call {
    pub(crate) route: Route,
    call: UpstreamCall,
    pub(crate) request: RequestSpec,
}

impl Servers {
    pub(crate) fn new(wakers: &WakeQueue) -> Self {
        Self {
            calls: Vec::new(),
            wakers: wakers.clone(),
        }
    }
}

impl Connector for Servers {
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest {
        let (ours, call) = attempt(request, waker, &self.wakers, 0);
        let request = call.take_head().expect("it was put in");
        call.put_head_back(request.clone());
        self.calls.push(Call {
            route,
            call,
            request,
        });
        ours
    }

    fn resolve(&mut self, _: Option<&Arc<NameServers>>, _: &str, _: u64, waker: Waker) -> Lookup {
        let lookup = Lookup::pending();
        lookup.complete(Err("3: Host not found".to_owned()));
        waker.wake();
        lookup
    }
}

impl Call {
    /// The connection is established, and `bytes` of the request were sent.
    pub(crate) fn sent(&self, bytes: u64) -> &Self {
        self.call.record(|facts| {
            facts.connected_ms = Some(facts.connected_ms.unwrap_or(super::START_MS));
            facts.sent_bytes = bytes;
        });
        self
    }

    /// The received part of the request body, and whether it has ended.
    pub(crate) fn body(&self) -> (String, bool) {
        let mut text = String::new();
        while let Some(chunk) = self.call.take_body() {
            text.push_str(&super::shown(&chunk));
        }
        (text, self.call.take_body_end().is_some())
    }

    /// A head: its status, and lines with fields.
    pub(crate) fn head(&self, status: u16, fields: &[&str]) -> &Self {
        self.sent(100);
        let head = Box::new(head(status, fields));
        self.call.deliver(UpstreamEvent::Head(head, 0));
        self
    }

    /// A head with a reason phrase.
    pub(crate) fn phrased(&self, status: u16, phrase: &[u8]) -> &Self {
        self.sent(100);
        let mut head = head(status, &[]);
        head.set_phrase(status, phrase);
        self.call.deliver(UpstreamEvent::Head(Box::new(head), 0));
        self
    }

    pub(crate) fn interim(&self, status: u16, fields: &[&str]) -> &Self {
        let head = Box::new(head(status, fields));
        self.call.deliver(UpstreamEvent::Interim(head));
        self
    }

    pub(crate) fn data(&self, text: &str) -> &Self {
        self.bytes(text.as_bytes().to_vec())
    }

    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> &Self {
        self.call.deliver(UpstreamEvent::Data(Chunk::Owned(bytes)));
        self
    }

    pub(crate) fn deliver(&self, event: UpstreamEvent) -> &Self {
        self.call.deliver(event);
        self
    }

    pub(crate) fn end(&self) {
        self.call.deliver(UpstreamEvent::End);
    }

    pub(crate) fn fail(&self, failure: Failure) {
        let sent_bytes = match failure {
            Failure::Socket {
                call: "connect()", ..
            } => 0,
            _ => 100,
        };
        self.tell_failed(failure, sent_bytes);
    }

    /// The attempt fails after `sent_bytes` of the request.
    pub(crate) fn tell_failed(&self, failure: Failure, sent_bytes: u64) {
        if sent_bytes > 0 {
            self.sent(sent_bytes);
        }
        self.call.deliver(UpstreamEvent::Failed(UpstreamError {
            failure,
            sent_bytes,
            reused: false,
            untouched: false,
        }));
    }

    /// The idle connection that was used turns out to be dead.
    pub(crate) fn die(&self, untouched: bool) {
        self.sent(100);
        self.call.deliver(UpstreamEvent::Failed(UpstreamError {
            failure: Failure::Closed,
            sent_bytes: 100,
            reused: true,
            untouched,
        }));
    }

    pub(crate) fn window(&self) -> u64 {
        self.call.window()
    }

    pub(crate) fn wake_at_ms(&self) -> Option<u64> {
        self.call.wake_at_ms()
    }

    pub(crate) fn wake_if_due(&self, now_ms: u64) {
        self.call.wake_if_due(now_ms);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.call.is_given_up()
    }

    /// The server's address, as text.
    pub(crate) fn addr(&self) -> String {
        self.route.addr.to_string()
    }
}

/// A connection that the server's machine refused.
pub(crate) fn refused() -> Failure {
    Failure::Socket {
        call: "connect()",
        errno: 111,
    }
}

fn head(status: u16, fields: &[&str]) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    for line in fields {
        let (name, value) = line.split_once(": ").expect("a field");
        head.push(name.as_bytes(), value.as_bytes());
    }
    head
}

/// The state of locations with `pass`, for the thread of one test.
pub(crate) struct Passing {
    pub(crate) conf: UpstreamConf,
    /// The last bytes of the servers' addresses.
    pub(crate) servers: Vec<u8>,
    /// The method of choosing a server, with which they are a group of the configuration.
    pub(crate) method: Option<Arc<dyn Method>>,
    pub(crate) hints: bool,
    /// The gateway's verdict on heads.
    pub(crate) verdict: Verdict,
}

impl Passing {
    /// nginx's defaults, with one server.
    pub(crate) fn new() -> Self {
        let hidden = ["date", "server", "x-accel-redirect", "x-accel-expires"];
        Self {
            conf: UpstreamConf {
                request: PassedRequest {
                    fields: true,
                    body: RequestBody::Whole,
                },
                buffering: Buffering {
                    reads_ahead: true,
                    buffers: (8, 4096),
                    temp_file_write_size: 8192,
                    temp_path: Some(TempDir {
                        path: b"/temp".to_vec(),
                        levels: [0; 3],
                    }),
                    max_temp_file_size: 1 << 30,
                    ..Buffering::default()
                },
                timeouts: Timeouts {
                    connect_ms: 60_000,
                    send_ms: 60_000,
                    read_ms: 60_000,
                },
                retry: Retry {
                    on: NextUpstream(NextUpstream::ERROR | NextUpstream::TIMEOUT),
                    ..Retry::default()
                },
                fields: ResponseFields {
                    hidden: (hidden.iter().map(|name| name.as_bytes().into()))
                        .collect::<Vec<Box<[u8]>>>()
                        .into(),
                    ..ResponseFields::default()
                },
                ..UpstreamConf::default()
            },
            servers: vec![1],
            method: None,
            hints: false,
            verdict: Verdict::Pass,
        }
    }

    /// Has locations of this thread do so.
    pub(crate) fn set(self) {
        PASSING.set(Some(Box::leak(Box::new(self))));
    }
}

thread_local! {
    static PASSING: Cell<Option<&'static Passing>> = const { Cell::new(None) };
    /// The lengths that request bodies announced.
    pub(crate) static ANNOUNCED: RefCell<Vec<BodyLength>> = const { RefCell::new(Vec::new()) };
}

fn passing() -> &'static Passing {
    PASSING.get().expect("the test has said what to do")
}

fn addresses() -> impl Iterator<Item = UpstreamAddr> {
    let servers = passing().servers.iter();
    servers.map(|last| UpstreamAddr::Inet(SocketAddr::from(([10, 0, 0, *last], 80))))
}

/// Defines the group of a method.
fn define_group(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let groups = b.conf_mut::<Groups>();
    let id = groups.add(d, "group", Some(80), 80)?;
    let group = groups.get_mut(id);
    group.method.clone_from(&passing().method);
    group.servers = (addresses())
        .map(|address| Server {
            addresses: vec![address],
            ..Server::new()
        })
        .collect();
    Ok(())
}

struct Test;

impl Gateway for Test {
    fn conf<'h>(&self, _: &Exchange, _: &'h Http) -> &'h UpstreamConf {
        &passing().conf
    }

    fn target(&self, x: &mut Exchange, _: &mut Ctx<'_>) -> Result<Target, u16> {
        if x.target.uri == b"/up/name" {
            return Ok(Target::Name("a.example".to_owned(), 80));
        }
        match passing().method {
            Some(_) => Ok(Target::Group(GroupId(0))),
            None => Ok(Target::Addresses(addresses().collect())),
        }
    }

    fn request(
        &self,
        x: &mut Exchange,
        _: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        ANNOUNCED.with_borrow_mut(|all| all.push(outgoing.body));
        let mut fields = Fields::default();
        let method = match x.target.method {
            http::Method::Post => b"POST".as_slice(),
            _ => b"GET",
        };
        fields.push(b":method", method);
        fields.push(b":path", &x.target.uri);
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            keep: true,
            ..RequestSpec::default()
        })
    }

    fn protocol(&self) -> &'static ProtocolSpec {
        &HTTP1
    }

    fn head(&self, _: &mut Exchange, _: &mut Ctx<'_>, _: &ResponseHead) -> Verdict {
        passing().verdict
    }

    fn passes_hints(&self, _: &mut Exchange, _: &mut Ctx<'_>) -> bool {
        passing().hints
    }
}

/// A module with the directive `pass`.
pub(crate) const PASS: Module = Module {
    name: "pass",
    settings: &[<Groups as Conf>::def, <group::GroupValues as Conf>::def],
    finish: Some(group::finish),
    directives: &[&[DirectiveDef {
        name: "pass",
        contexts: Contexts::LOCATION,
        arity: Arity::NOARGS,
        block: false,
        default: "",
        doc: "Passes requests on as the test says.",
        syntax: "",
        apply: |b, d| {
            if passing().method.is_some() {
                define_group(b, d)?;
            }
            b.set_handler(|x, cx| upstream::handle(x, cx, &Test));
            Ok(())
        },
    }]],
    variables: upstream::VARIABLES,
    ..Module::EMPTY
};

/// The modules of a configuration with `pass`.
pub(crate) const MODULES: &[&Module] = &[&PROBE, &PASS];
