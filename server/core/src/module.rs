//! What a module is: rows of data that the core reads in one order.
//!
//! A module is one file with one `MODULE`. The list of modules is ordered and explicit; its order is the order in
//! which handlers of one phase run and header stages are applied.

use conf::{ConfError, Row};

use crate::build::Build;
use crate::confs::Unit;
use crate::exchange::{Ctx, Exchange};
use crate::phases::Phase;
use crate::vars::Variable;

/// A module of the HTTP server.
pub struct Module {
    /// Name, as in `--without-http_NAME_module`.
    pub name: &'static str,
    /// Names of loadable modules of nginx that do what this one does, as in `ngx_http_NAME_module.so`.
    pub stands_for: &'static [&'static str],
    /// Its directives.
    pub directives: &'static [&'static [Row<Build>]],
    /// Its structs of settings.
    pub units: &'static [fn() -> &'static Unit],
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its variables that `map`, `set` and their kin may define anew.
    pub defaults: &'static [Variable],
    /// Its phase handlers.
    pub handlers: &'static [Handler],
    /// Its header stage.
    pub header_stage: Option<HeaderStage>,
    /// Its header stage is run for subrequests, too: it is about the body, not about the head that the client gets.
    pub stage_of_subrequests: bool,
    /// Handlers and header stage do nothing unless one of its directives is written; where none is, they are left out.
    pub dormant: bool,
    /// Called when the `http` block has been read and merged.
    pub finish: Option<Finish>,
    /// Directives that reach inner levels in another way than most.
    pub inherits: &'static [(&'static str, Inherit)],
}

impl Module {
    /// A module with nothing in it, to be filled by struct update.
    pub const EMPTY: Self = Self {
        name: "",
        stands_for: &[],
        directives: &[],
        units: &[],
        variables: &[],
        defaults: &[],
        handlers: &[],
        header_stage: None,
        stage_of_subrequests: false,
        dormant: false,
        finish: None,
        inherits: &[],
    };
}

/// How what a directive says at one level reaches the levels inside it: what the merge functions of the settings do, for
/// those who show where a setting in effect was written. A directive that no list names does as
/// [`Inherit::Around`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// A level that does not have it has that of the level around it.
    Around,
    /// As `Around`, but a level that has the other one has its own of both.
    With(&'static str),
    /// As `Around`, unless the directive named says `merge` (then both levels') or `off` (then only the inner one's).
    As(&'static str),
    /// Only `if` and `limit_except` blocks have that of the location around them.
    Blocks,
    /// Not at all.
    Never,
    /// It is no setting: it runs where it stands.
    Step,
}

/// A function called when the `http` block has been read and merged.
///
/// # Errors
/// What is wrong with the block as a whole.
pub type Finish = fn(&mut Build) -> Result<(), ConfError>;

/// A function run before the response head is sent: it decides on headers and may add body stages.
///
/// # Errors
/// A status to answer with in place of the response; fields in `reply.fields` stay.
pub type HeaderStage = fn(&mut Exchange, &mut Ctx<'_>) -> Result<(), u16>;

/// A handler in one of the phases. nginx's eleven phases less the four that only the core runs.
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
}

/// The name of the module whose handler is the one of this index in a phase.
pub fn handler_name(
    modules: &[&'static Module],
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
        Handler::Log(_) => false,
    };
    let names = modules
        .iter()
        .flat_map(|m| m.handlers.iter().map(|handler| (m.name, handler)));
    let mut of_phase = names.filter(|(_, handler)| of_phase(handler));
    of_phase.nth(index).map(|(name, _)| name)
}

/// What a rewrite, limit or pre-content handler decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on with the next handler.
    Next,
    /// Answer with this status.
    Status(u16),
    /// The response is made.
    Sent,
    /// The exchange was redirected internally: go on from the phase it names.
    Restart,
    /// Nothing yet: run this handler's phase again when the exchange's timer fires.
    Wait,
}

/// What an access handler decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// This handler has no say.
    NoOpinion,
    /// Allowed.
    Allow,
    /// Refused with this status.
    Deny(u16),
    /// Nothing yet: ask again when the exchange's timer fires.
    Wait,
}

/// What a content handler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not mine.
    Declined,
    /// Answer with this status.
    Status(u16),
    /// The response is made.
    Sent,
    /// The exchange was redirected internally.
    Restart,
    /// Nothing yet: run this handler again when the exchange's timer fires, or when the body that it asked for is there.
    Wait,
}
