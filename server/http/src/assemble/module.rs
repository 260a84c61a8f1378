//! Modules: rows of data that the core reads in one order.
//!
//! A module is one file with one `MODULE`. The list of modules is ordered and explicit; its order is the order in
//! which handlers of one phase run and header stages are applied.

use conf::{ConfError, DirectiveDef};

use super::ConfigBuilder;
pub use crate::handler::{Access, Content, Handler, HeaderStage, Step, handler_name};
use crate::settings_set::SettingsDef;
use crate::vars::Variable;
use crate::wants::Wants;

/// A module of the HTTP server.
pub struct Module {
    /// Name, as in `--without-http_NAME_module`.
    pub name: &'static str,
    /// Loadable modules of nginx with the same function, as in `ngx_http_NAME_module.so`.
    pub replaces: &'static [&'static str],
    /// Its directives.
    pub directives: &'static [&'static [DirectiveDef<ConfigBuilder>]],
    /// Its structs of settings.
    pub settings: &'static [fn() -> &'static SettingsDef],
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its variables that `map`, `set` and their kin may define anew.
    pub defaults: &'static [Variable],
    /// Its phase handlers.
    pub handlers: &'static [Handler],
    /// Its header stage, run once the head of the response is decided.
    pub header_stage: Option<HeaderStage>,
    /// Its header stage is run for subrequests, too: it is about the body, not about the head that the client gets.
    pub stage_of_subrequests: bool,
    /// Handlers and header stage do nothing unless one of its directives is written; otherwise they are left out.
    pub on_demand: bool,
    /// Returns the events that the module subscribes to. The argument is true if one of its directives or variables is in
    /// use.
    pub wants: Option<fn(&mut ConfigBuilder, bool) -> Wants>,
    /// Called when the `http` block has been read and merged.
    pub finish: Option<Finish>,
    /// Directives that reach inner levels in another way than most.
    pub inherits: &'static [(&'static str, Inherit)],
}

impl Module {
    /// A module with nothing in it, to be filled by struct update.
    pub const EMPTY: Self = Self {
        name: "",
        replaces: &[],
        directives: &[],
        settings: &[],
        variables: &[],
        defaults: &[],
        handlers: &[],
        header_stage: None,
        stage_of_subrequests: false,
        on_demand: false,
        wants: None,
        finish: None,
        inherits: &[],
    };
}

/// Inheritance of a directive by the levels inside its own. Merge functions of settings follow the rule; tools use it to
/// show the line of a setting in effect. A directive that no list names follows
/// [`Inherit::Around`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// A level that does not have it has that of the level around it.
    Around,
    /// As `Around`, but a level that has the other one has its own of both.
    With(&'static str),
    /// As `Around`, unless the named directive is `merge` (both levels apply) or `off` (only the inner one
    /// applies).
    As(&'static str),
    /// Only `if` and `limit_except` blocks have that of the location around them.
    Blocks,
    /// Not at all.
    Never,
    /// It is no setting: it runs in the order of the lines.
    Step,
}

/// A function called when the `http` block has been read and merged.
///
/// # Errors
/// The error in the block as a whole.
pub type Finish = fn(&mut ConfigBuilder) -> Result<(), ConfError>;
