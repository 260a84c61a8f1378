//! Handlers: functions of modules that run in a phase. Their decisions are in [`decision`](crate::decision).

use engines::http::probe::ProbeEvent;
use tls::Config;

use crate::decision::Phase;
pub use crate::decision::{Access, Content, Step};
use crate::exchange::{Ctx, Exchange};

/// A function run before the response head is sent: it decides on headers and may add body stages.
///
/// # Errors
/// A status to answer with in place of the response; fields in `reply.fields` stay.
pub type HeaderStage = fn(&mut Exchange, &mut Ctx<'_>) -> Result<(), u16>;

/// A handler in one of the phases. nginx's eleven phases less the three that only the core runs.
#[derive(Clone, Copy)]
pub enum Handler {
    /// After the head was read, before any rewriting (`realip`).
    PostRead(fn(&mut Exchange, &mut Ctx<'_>) -> Step),
    /// `rewrite` directives of the server.
    ServerRewrite(fn(&mut Exchange, &mut Ctx<'_>) -> Step),
    /// `rewrite` directives of the location.
    Rewrite(fn(&mut Exchange, &mut Ctx<'_>) -> Step),
    /// Limits.
    PreAccess(fn(&mut Exchange, &mut Ctx<'_>) -> Step),
    /// May the client have it?
    Access(fn(&mut Exchange, &mut Ctx<'_>) -> Access),
    /// `try_files`, mirrors.
    PreContent(fn(&mut Exchange, &mut Ctx<'_>) -> Step),
    /// Who answers?
    Content(fn(&mut Exchange, &mut Ctx<'_>) -> Content),
    /// After the response.
    Log(fn(&mut Exchange, &mut Ctx<'_>)),
    /// When something has happened that a module wants to know ([`crate::probe`]).
    Event(Subscriber),
}

/// Takes an event, with its exchange if that has not ended.
pub type Subscriber = fn(&ProbeEvent, Option<&mut Exchange>);

pub(crate) type StepFn = fn(&mut Exchange, &mut Ctx<'_>) -> Step;

/// The handlers of each phase, in order.
#[derive(Default)]
pub struct Handlers {
    pub(crate) post_read: Vec<StepFn>,
    pub(crate) server_rewrite: Vec<StepFn>,
    pub(crate) rewrite: Vec<StepFn>,
    pub(crate) pre_access: Vec<StepFn>,
    pub(crate) access: Vec<fn(&mut Exchange, &mut Ctx<'_>) -> Access>,
    pub(crate) pre_content: Vec<StepFn>,
    pub(crate) content: Vec<fn(&mut Exchange, &mut Ctx<'_>) -> Content>,
    pub(crate) log: Vec<fn(&mut Exchange, &mut Ctx<'_>)>,
    pub(crate) event: Vec<Subscriber>,
}

impl Handlers {
    /// These handlers, each behind those of its phase that come before it.
    pub fn of(handlers: &[(&'static str, &'static [Handler])]) -> Self {
        let mut all = Self::default();
        for handler in handlers.iter().flat_map(|(_, handlers)| *handlers) {
            match *handler {
                Handler::PostRead(f) => all.post_read.push(f),
                Handler::ServerRewrite(f) => all.server_rewrite.push(f),
                Handler::Rewrite(f) => all.rewrite.push(f),
                Handler::PreAccess(f) => all.pre_access.push(f),
                Handler::Access(f) => all.access.push(f),
                Handler::PreContent(f) => all.pre_content.push(f),
                Handler::Content(f) => all.content.push(f),
                Handler::Log(f) => all.log.push(f),
                Handler::Event(f) => all.event.push(f),
            }
        }
        all
    }
}

/// The name of the module of a handler, by its index in a phase; `handlers` are those of each module, with its
/// name.
pub fn handler_name(
    handlers: &[(&'static str, &'static [Handler])],
    phase: Phase,
    index: usize,
) -> Option<&'static str> {
    let of_phase = |handler: &Handler| match handler {
        Handler::PostRead(_) => phase == Phase::PostRead,
        Handler::ServerRewrite(_) => phase == Phase::ServerRewrite,
        Handler::Rewrite(_) => phase == Phase::Rewrite,
        Handler::PreAccess(_) => phase == Phase::PreAccess,
        Handler::Access(_) => phase == Phase::Access,
        Handler::PreContent(_) => phase == Phase::PreContent,
        Handler::Content(_) => phase == Phase::Content,
        Handler::Log(_) | Handler::Event(_) => false,
    };
    let names = handlers
        .iter()
        .flat_map(|(name, handlers)| handlers.iter().map(move |handler| (*name, handler)));
    let mut of_phase = names.filter(|(_, handler)| of_phase(handler));
    of_phase.nth(index).map(|(name, _)| name)
}

/// Loads the certificates of a server for one handshake.
pub trait DynamicCertificates: Send + Sync {
    /// The server's settings with certificates; `None` if one cannot be loaded, which has been logged.
    fn load(&self, x: &mut Exchange, cx: &mut Ctx<'_>, settings: &Config) -> Option<Config>;
}
