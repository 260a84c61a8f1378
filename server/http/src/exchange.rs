//! An exchange: one request and its response, from the first byte of the head to the line in the log.
//!
//! Exchanges are boxed, pooled by the driver and reused: [`Exchange::begin`] makes one ready, buffers keep their
//! capacity. Nothing here knows which protocol carries the exchange or how its connection waits.

mod arrival;
mod body;
mod body_source;
mod early_responses;
mod extensions;
mod log;
mod matching;
mod rate;
mod slots;
mod stage_queue;
mod subrequest;
mod subrequest_queue;
mod tls;
mod uri;
mod wait;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;

use engines::http::{Chunk, Method, RequestHead, ResponseHead};
use engines::proxy_protocol;
use server_base::clock::Clock;
use server_base::files::Opened;
use server_base::regex::{Captures, FailedMatch};
use server_base::waker::{WakeKey, Waker};

use crate::conf_core::CoreLoc;
use crate::handler::Phase;
use crate::host_cache::HostCache;
use crate::http::{Http, LocalHttp, Location, PortAddr, Server};
use crate::request_body::RequestBody;
use crate::settings_set::Conf;
use crate::timing::{Sampled, Timings};
use crate::trace::Trace;
use crate::upstream::Upstream;

pub use arrival::OnArrival;
pub use body::{BodyStage, Broken, Pulled, StageStatus};
pub use body_source::{BodyRead, BodySource};
pub use early_responses::{EarlyResponses, HINTS_MAX};
pub use extensions::{DropGuard, Extensions};
pub use rate::Rate;
pub use server_base::context::{BODY_BUDGET_BYTES, Ctx, Env};
pub use server_base::peer::Peer;
use stage_queue::StageQueue;
pub use subrequest::{Answer, MAX_SUBREQUESTS, MAX_SUBREQUESTS_DEEP, Subrequest, SubrequestState};
pub use tls::Tls;
pub use wait::Wait;

/// Whether a server of an address, by its index, offers a protocol.
pub type Offers = fn(&Http, &PortAddr, usize) -> bool;

/// Properties of the connection that carries an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Address of the peer.
    pub peer: Peer,
    /// Our address, where it is known.
    pub local: Option<SocketAddr>,
    /// `$connection`.
    pub connection: u64,
    /// `$connection_requests`: 1 for the first.
    pub requests: u64,
    /// When the connection was accepted, monotonic milliseconds.
    pub since_ms: u64,
    /// The head was already there when the previous response ended.
    pub pipelined: bool,
    /// The client accepts pushed responses.
    pub may_push: bool,
    /// Whether a server offers the protocol of the connection; `None` for a protocol that all servers offer.
    pub offers: Option<Offers>,
    /// `debug_connection` names the peer: its connection is logged at level debug, everywhere.
    pub debug: bool,
    /// The number of its socket, which is open as long as its exchanges are.
    pub socket: i32,
    /// The target of the exchange's [`Waker`].
    pub wake: WakeKey,
}

/// The response while it is being decided; the last header stage turns it into a [`ResponseHead`].
#[derive(Debug, Default)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// `Content-Type` without charset; empty for none.
    pub content_type: Vec<u8>,
    /// Charset to add to the content type.
    pub charset: Vec<u8>,
    /// Length of the body in bytes, where it is known.
    pub content_length: Option<u64>,
    /// Modification time of the content, seconds since 1970.
    pub last_modified: Option<i64>,
    /// That time as text, where it is at hand.
    pub last_modified_text: Option<Rc<[u8]>>,
    /// `ETag`.
    pub etag: Option<Rc<[u8]>>,
    /// `Location`.
    pub location: Vec<u8>,
    /// The file whose bytes, from the first to the last, are the body as the content handler made it.
    pub source: Option<Rc<Opened>>,
    /// Whether range requests may be served from it.
    pub allow_ranges: bool,
    /// Of several ranges that are asked for at once, none is served.
    pub single_range: bool,
    /// The request's conditions are not evaluated: the origin of the response has done that.
    pub unconditional: bool,
    /// `add_header` and `expires` have had their say: an error met after that does not get their fields twice.
    pub headers_added: bool,
    /// Other fields in the order in which they are sent.
    pub fields: ResponseHead,
    /// Trailer fields.
    pub trailers: ResponseHead,
}

impl Reply {
    fn clear(&mut self) {
        self.status = 0;
        self.content_type.clear();
        self.charset.clear();
        self.content_length = None;
        self.last_modified = None;
        self.last_modified_text = None;
        self.etag = None;
        self.location.clear();
        self.source = None;
        self.allow_ranges = false;
        self.single_range = false;
        self.unconditional = false;
        self.headers_added = false;
        self.fields.clear();
        self.trailers.clear();
    }
}

/// The state of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the phases.
    Running,
    /// Waiting, in a phase.
    Waiting(Wait),
    /// The connection is to be closed without a response.
    Aborted,
    /// The response head is complete; the body is pulled.
    Responding,
}

/// A function that is called when the body has ended.
pub type OnEnd = fn(&mut Exchange, &mut Ctx<'_>);

/// One request and its response.
pub struct Exchange {
    /// The configuration this exchange runs under.
    pub http: Rc<LocalHttp>,
    /// Index of the port in [`Http::ports`].
    pub port: usize,
    /// Index of the server.
    pub server: usize,
    /// Index of the location.
    pub location: usize,
    /// The connection.
    pub client: Client,
    /// The connection's peer, where `client` has been given the address of one behind it.
    pub proxy: Option<Peer>,
    /// The header of the PROXY protocol that the connection began with.
    pub proxied: Option<Rc<proxy_protocol::Header>>,
    /// The TLS connection that carries it, if there is one.
    pub tls: Option<Rc<Tls>>,
    /// How fast the response may be sent.
    pub rate: Rate,
    /// The request head.
    pub head: RequestHead,
    /// Method used for processing (error pages turn it into GET).
    pub method: Method,
    /// `$host` as the client named it, lower-cased and without port; empty if it named none.
    pub host: Vec<u8>,
    /// The host that was read last in this memory.
    pub(crate) host_cache: HostCache,
    /// Port in the request's host, where there was one.
    pub host_port: Option<u16>,
    /// `$uri`: normalised, then rewritten.
    pub uri: Vec<u8>,
    /// `$args`.
    pub args: Vec<u8>,
    /// There are arguments, if empty ones.
    pub has_args: bool,
    /// The extension of the URI, a range of `uri`.
    pub ext: Range<usize>,
    /// The target held escapes or a plus sign.
    pub quoted_uri: bool,
    /// The URI still lies in the location it was found for; not after `rewrite ... break`.
    pub valid_location: bool,
    /// URI and arguments are those of the request's target; never in a subrequest.
    pub valid_target: bool,
    /// `try_files` found a file below the `alias` of a regular expression: the URI is appended to it.
    pub uri_below_alias: bool,
    /// The request body was found too large: it is dropped, whatever the location of the error page says of it.
    pub too_large: bool,
    /// The received part of the request body, where there is one and the response is not decided yet.
    pub(crate) request_body: Option<Box<RequestBody>>,
    /// `$request_id`, once it was asked for.
    pub request_id: Option<[u8; 16]>,
    /// Number of computed variables whose evaluation is nested now.
    pub depth: u8,
    /// The response being decided.
    pub reply: Reply,
    /// The response head as it is sent.
    pub response: ResponseHead,
    /// The body's chunks that wait to be pulled.
    pub body: VecDeque<Chunk>,
    /// The source of the chunks behind them, if there is one.
    pub body_source: Option<Box<dyn BodySource>>,
    /// Callback for arrivals while the response is on its way; set where a server is asked.
    pub on_arrival: Option<OnArrival>,
    /// The source has given something that stages may still hold.
    unflushed: bool,
    /// Bytes of the response that wait for a client that takes none now; 0 while it takes them.
    pub unsent_bytes: u64,
    /// The exchange goes on although its client has ended its side.
    pub ignore_abort: bool,
    /// Body stages, first the one nearest to the source.
    pub stages: Vec<Box<dyn BodyStage>>,
    stage_queues: Vec<StageQueue>,
    /// Captures of the last regular expression.
    pub captures: Captures,
    /// An expression ran into its match limit.
    pub failed_match: FailedMatch,
    slots: Vec<Option<Vec<u8>>>,
    known: Vec<bool>,
    /// Values that modules keep with the exchange until it ends.
    pub extensions: Extensions,
    /// Progress.
    pub state: State,
    /// The condition that the rest of the body waits for, as [`Exchange::pull`] found it.
    pub pull_wait: Option<Wait>,
    waker: Option<Waker>,
    /// The phase that runs next.
    pub phase: Phase,
    /// Handlers of the phase that have run.
    pub handler: usize,
    /// An internal redirect, a rewrite or an error page made this request.
    pub internal: bool,
    /// A rewrite changed the URI: look for a location again.
    pub uri_changed: bool,
    /// Redirections left.
    pub uri_changes: u8,
    /// An error page is being served.
    pub error_page: bool,
    /// Status of the error being served, 0 for none.
    pub err_status: u16,
    /// The status that `satisfy any` keeps.
    pub access_code: u16,
    /// The whole response was sent.
    pub completed: bool,
    /// Keep the connection after this response.
    pub keep_alive: bool,
    /// The filters have run: it is too late for another status.
    pub header_sent: bool,
    /// When the head was complete, monotonic milliseconds.
    pub started_ms: u64,
    /// The begin of the exchange on the wall clock, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Bytes of the request received, head and body.
    pub request_bytes: u64,
    /// Bytes sent for this exchange.
    pub bytes_sent: u64,
    /// Called when the body has ended, before trailers are sent.
    pub on_end: Option<OnEnd>,
    /// The record of the servers that it is passed to.
    pub upstream: Option<Box<Upstream>>,
    /// The memory of that of an earlier request.
    pub(crate) spare_upstream: Option<Box<Upstream>>,
    /// Interim responses and pushes that leave ahead of the response.
    pub early_responses: Option<Box<EarlyResponses>>,
    /// Bytes on the wire of the response head and of what leaves ahead of it.
    pub header_bytes: u64,
    /// When it came how far, where the configuration asks for that.
    pub timings: Timings,
    /// The kernel's times of its first byte, if the response is sampled.
    pub sampled: Sampled,
    /// Its place among subrequests, and those of its own.
    pub subrequests: SubrequestState,
    /// Where what happens is noted; never while serving.
    pub trace: Option<Rc<Trace>>,
}

impl Exchange {
    /// An empty exchange.
    // Long: a line for each field.
    pub fn new(http: Rc<LocalHttp>, client: Client) -> Self {
        Self {
            http,
            port: 0,
            server: 0,
            location: 0,
            client,
            proxy: None,
            proxied: None,
            tls: None,
            rate: Rate::default(),
            head: RequestHead::default(),
            method: Method::Get,
            host: Vec::new(),
            host_cache: HostCache::default(),
            host_port: None,
            uri: Vec::new(),
            args: Vec::new(),
            has_args: false,
            ext: 0..0,
            quoted_uri: false,
            valid_location: true,
            valid_target: false,
            uri_below_alias: false,
            too_large: false,
            request_body: None,
            request_id: None,
            depth: 0,
            reply: Reply::default(),
            response: ResponseHead::default(),
            body: VecDeque::new(),
            body_source: None,
            on_arrival: None,
            unflushed: false,
            unsent_bytes: 0,
            ignore_abort: false,
            stages: Vec::new(),
            stage_queues: Vec::new(),
            captures: Captures::default(),
            failed_match: FailedMatch::None,
            slots: Vec::new(),
            known: Vec::new(),
            extensions: Extensions::default(),
            state: State::Running,
            pull_wait: None,
            waker: None,
            phase: Phase::PostRead,
            handler: 0,
            internal: false,
            uri_changed: false,
            // nginx counts down and fails at 0, so that so many changes are allowed and one more is not.
            uri_changes: MAX_URI_CHANGES + 1,
            error_page: false,
            err_status: 0,
            access_code: 0,
            completed: false,
            keep_alive: false,
            header_sent: false,
            started_ms: 0,
            started_unix_ms: 0,
            request_bytes: 0,
            bytes_sent: 0,
            on_end: None,
            upstream: None,
            spare_upstream: None,
            early_responses: None,
            header_bytes: 0,
            timings: Timings::default(),
            sampled: Sampled::default(),
            subrequests: SubrequestState::default(),
            trace: None,
        }
    }

    /// Makes the exchange ready for a new request; buffers keep their capacity. It is new, or its reply was cleared when the
    /// last one was over ([`Exchange::clear_reply`]).
    #[inline(always)] // Every request comes through here, from one place of the driver.
    pub fn begin(&mut self, http: Rc<LocalHttp>, port: usize, client: Client, clock: &Clock) {
        debug_assert!(self.body.is_empty() && self.body_source.is_none() && self.stages.is_empty());
        debug_assert!(self.waker.is_none(), "it went with the last request");
        debug_assert!(self.reply.status == 0 && self.reply.fields.fields.is_empty());
        // Field by field, not by `new`: the buffers keep their memory, and a copy of the whole would cost more than the request.
        let slots = http.vars.slots;
        self.http = http;
        self.port = port;
        self.client = client;
        self.proxy = None;
        self.proxied = None;
        self.tls = None;
        self.rate = Rate::default();
        self.host.clear();
        self.host_port = None;
        self.uri.clear();
        self.args.clear();
        self.has_args = false;
        self.ext = 0..0;
        self.quoted_uri = false;
        self.valid_location = true;
        self.valid_target = false;
        self.uri_below_alias = false;
        self.too_large = false;
        self.request_body = None;
        self.request_id = None;
        self.depth = 0;
        self.response.clear();
        self.captures.clear();
        self.failed_match = FailedMatch::None;
        self.slots.clear();
        self.slots.resize(slots, None);
        self.known.clear();
        self.known.resize(slots, false);
        self.extensions.clear();
        self.state = State::Running;
        self.pull_wait = None;
        self.ignore_abort = false;
        self.phase = Phase::PostRead;
        self.handler = 0;
        self.internal = false;
        self.uri_changed = false;
        self.uri_changes = MAX_URI_CHANGES + 1;
        self.error_page = false;
        self.err_status = 0;
        self.access_code = 0;
        self.completed = false;
        self.keep_alive = false;
        self.header_sent = false;
        self.started_ms = clock.mono_ms;
        self.started_unix_ms = clock.unix_ms;
        self.request_bytes = 0;
        self.bytes_sent = 0;
        self.on_end = None;
        // Most requests have neither, and looking is cheaper than dropping nothing.
        if self.upstream.is_some() {
            self.upstream = None;
        }
        if self.early_responses.is_some() {
            self.early_responses = None;
        }
        self.header_bytes = 0;
        self.timings = Timings::default();
        self.subrequests.begin();
    }

    /// Forgets what was decided about the response so far.
    pub fn clear_reply(&mut self) {
        self.reply.clear();
        self.drop_body();
    }

    /// Forgets the body and what was to become of it.
    pub fn drop_body(&mut self) {
        self.body.clear();
        self.body_source = None;
        self.on_arrival = None;
        self.unflushed = false;
        self.unsent_bytes = 0;
        self.clear_stages();
    }

    /// Forgets what an internal redirect must not carry along; `add_header` fields of an error stay with it.
    pub fn clear_for_redirect(&mut self) {
        self.uri_changed = false;
        self.reply.headers_added = false;
        self.reply.source = None;
        self.drop_body();
    }

    /// The server's settings of one module.
    pub fn srv<'h, T: Conf>(&self, http: &'h Http) -> &'h T {
        http.servers[self.server].confs.get()
    }

    /// The location's settings of one module.
    pub fn loc<'h, T: Conf>(&self, http: &'h Http) -> &'h T {
        http.locations[self.location].confs.get()
    }

    /// The location's settings of the core: the same as [`Self::loc`], and quicker.
    #[inline]
    pub fn core_loc<'h>(&self, http: &'h Http) -> &'h CoreLoc {
        http.locations[self.location].confs.core_loc()
    }

    /// The server.
    pub fn server_of<'h>(&self, http: &'h Http) -> &'h Server {
        &http.servers[self.server]
    }

    /// The location.
    pub fn location_of<'h>(&self, http: &'h Http) -> &'h Location {
        &http.locations[self.location]
    }
}

/// nginx's limit of internal redirections of one request (NGX_HTTP_MAX_URI_CHANGES).
pub const MAX_URI_CHANGES: u8 = 10;
