//! `rewrite`, `return`, `set`, `if`, `break`: directives that run in the order in which they are written.
//!
//! The directives of a block become a list of [`Op`]s. An `if` contains its own list, and the settings that apply if
//! its condition is true.
//!
//! Source: nginx documentation, `ngx_http_rewrite_module`.

mod condition;
mod replace;

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive, Pos};
use server_base::errlog::{Level, Printable};
use server_base::regex::Regex;
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange, UriOrigin};
use server_http::module::{Handler, Inherit, Module, Step};
use server_http::phases::location_changed;
use server_http::trace::{At, Event};
use server_http::value::Value;
use server_http::vars::Target;
use server_http::{reply, settings};

use condition::Condition;
use replace::{Replacement, quoted};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "rewrite",
    directives: &[PLAIN, ROWS],
    settings: &[<RewriteLoc as server_http::settings_set::Conf>::def],
    handlers: &[
        Handler::ServerRewrite(run_server),
        Handler::Rewrite(run_location),
    ],
    inherits: &[
        ("rewrite", Inherit::Step),
        ("return", Inherit::Step),
        ("set", Inherit::Step),
        ("break", Inherit::Step),
        ("if", Inherit::Step),
    ],
    on_demand: true,
    ..Module::EMPTY
};

const WHERE: Contexts = Contexts::SERVER
    .or(Contexts::LOCATION)
    .or(Contexts::IF_IN_SERVER)
    .or(Contexts::IF_IN_LOCATION);

settings! {
    /// Settings of the module.
    pub(crate) struct RewriteLoc: Location / PLAIN {
        /// Whether each rewrite is logged at notice level.
        rewrite_log "rewrite_log": bool = false, "off", Contexts::HTTP_TO_IF.or(Contexts::IF_IN_SERVER);
    }
    extra {
        /// The operations and their positions in the file; not inherited.
        ops: Vec<(Op, Pos)>
    }
}

/// One directive.
pub(crate) enum Op {
    /// `rewrite`.
    Rewrite(Box<Rewrite>),
    /// `return`.
    Return(u16, Option<Value>),
    /// `set`.
    Set(Target, Value),
    /// `if`.
    If(Box<If>),
    /// `break`.
    Break,
}

/// `rewrite`.
pub(crate) struct Rewrite {
    regex: Regex,
    replacement: Replacement,
    flag: Flag,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    None,
    Last,
    Break,
    Redirect(u16),
}

/// `if`.
pub(crate) struct If {
    condition: Condition,
    ops: Vec<(Op, Pos)>,
    location: Option<usize>,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Changes the URI if it matches a regular expression, or redirects.
    directive "rewrite": WHERE, TAKE23, "", "regex replacement [last | break | redirect | permanent]"
        => rewrite;

    /// Stops processing and answers.
    directive "return": WHERE, TAKE12, "", "code [text | URL] | URL" => return_;

    /// Sets a variable.
    directive "set": WHERE, TAKE2, "", "$variable value" => set;

    /// Stops processing the directives of this module.
    directive "break": WHERE, NOARGS, "", "" => |b, d| {
        push(b, d, Op::Break);
        Ok(())
    };

    /// Directives and settings that apply if a condition holds.
    block "if": Contexts::SERVER.or(Contexts::LOCATION), ONE_MORE, "", "(condition) { ... }" => if_;
}

fn rewrite(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if d.arg(1).is_empty() {
        return Err(ConfError::word(d, d.word(1), "empty replacement"));
    }
    let regex = Regex::compile(b, d, d.word(0), d.arg(0), false)?;
    let external = [&b"http://"[..], b"https://", b"$scheme"]
        .iter()
        .any(|p| d.arg(1).starts_with(p));
    let mut flag = if external {
        Flag::Redirect(302)
    } else {
        Flag::None
    };
    if d.args.len() == 3 {
        flag = match (d.arg(2), flag) {
            (b"last", Flag::Redirect(s)) | (b"break", Flag::Redirect(s)) => Flag::Redirect(s),
            (b"last", _) => Flag::Last,
            (b"break", _) => Flag::Break,
            (b"redirect", _) => Flag::Redirect(302),
            (b"permanent", _) => Flag::Redirect(301),
            _ => return Err(ConfError::parameter(d, d.word(2))),
        };
    }
    let replacement = Replacement::compile(b, d, d.word(1))?;
    let rewrite = Rewrite {
        regex,
        replacement,
        flag,
    };
    push(b, d, Op::Rewrite(Box::new(rewrite)));
    Ok(())
}

/// Adds an operation to its level.
fn push(b: &mut ConfigBuilder, d: &Directive, op: Op) {
    b.conf_mut::<RewriteLoc>().ops.push((op, d.pos));
}

fn return_(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let bad = || {
        ConfError::word(
            d,
            d.word(0),
            format!("invalid return code \"{}\"", d.arg_str(0)),
        )
    };
    let op = match conf::parse_number(d.arg(0)) {
        Some(code) => {
            let code = u16::try_from(code)
                .ok()
                .filter(|c| *c <= 999)
                .ok_or_else(bad)?;
            let text = match d.args.get(1) {
                Some(word) => Some(Value::compile(b, d, word)?),
                None => None,
            };
            Op::Return(code, text)
        }
        None => {
            let external = [&b"http://"[..], b"https://", b"$scheme"]
                .iter()
                .any(|p| d.arg(0).starts_with(p));
            if d.args.len() != 1 || !external {
                return Err(bad());
            }
            Op::Return(302, Some(Value::compile(b, d, d.word(0))?))
        }
    };
    push(b, d, op);
    Ok(())
}

fn set(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let Some(name) = d.arg(0).strip_prefix(b"$").filter(|n| !n.is_empty()) else {
        return Err(ConfError::word(
            d,
            d.word(0),
            format!("invalid variable name \"{}\"", d.arg_str(0)),
        ));
    };
    let target = b
        .vars
        .target(name)
        .map_err(|e| ConfError::word(d, d.word(0), e))?;
    let value = Value::compile(b, d, d.word(1))?;
    push(b, d, Op::Set(target, value));
    Ok(())
}

fn if_(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let condition = Condition::compile(b, d)?;
    let in_server = b.in_server();
    let outer = b.location();
    let id = b.open_location(
        Vec::new(),
        server_http::location::LocationKind::Block,
        false,
    );
    let context = if in_server {
        Contexts::IF_IN_SERVER
    } else {
        Contexts::IF_IN_LOCATION
    };
    conf::walk(b, d.items(), context)?;
    let ops = std::mem::take(&mut b.conf_mut::<RewriteLoc>().ops);
    b.set_location(outer);
    let location = (!in_server).then_some(id);
    let block = If {
        condition,
        ops,
        location,
    };
    push(b, d, Op::If(Box::new(block)));
    Ok(())
}

fn run_server(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    let conf: &RewriteLoc = http.locations[http.servers[x.route.server].location]
        .confs
        .get();
    let mut state = Run::of(conf, x);
    finish(run(x, cx, &conf.ops, &mut state))
}

fn run_location(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    if x.route.location == x.route.own_server().location {
        return Step::Next;
    }
    let http = Rc::clone(&x.route.http);
    let conf: &RewriteLoc = http.locations[x.route.location].confs.get();
    let mut state = Run::of(conf, x);
    finish(run(x, cx, &conf.ops, &mut state))
}

/// The outcome of running a list of operations.
enum Flow {
    /// At its end.
    Through,
    /// By a flag or `break`.
    Stop,
    /// With a status.
    Status(u16),
    /// With a response.
    Sent,
}

fn finish(flow: Flow) -> Step {
    match flow {
        Flow::Through | Flow::Stop => Step::Next,
        Flow::Status(status) => Step::Status(status),
        Flow::Sent => Step::Sent,
    }
}

/// One run through the directives of a block.
struct Run {
    log: bool,
    /// Whether captures are escaped again if the target was escaped: until a rewrite has changed the URI, as in nginx.
    quote: bool,
}

impl Run {
    fn of(conf: &RewriteLoc, x: &Exchange) -> Self {
        Self {
            // As in nginx, debugged connections log without `rewrite_log`.
            log: *conf.rewrite_log || x.is_debugged(),
            quote: true,
        }
    }
}

fn run(x: &mut Exchange, cx: &mut Ctx<'_>, ops: &[(Op, Pos)], state: &mut Run) -> Flow {
    for (op, at) in ops {
        let flow = match op {
            Op::Set(target, value) => {
                let value = quoted(value, x, cx, state.quote);
                ran(x, *at, || format!("value {}", display(&value)));
                match target {
                    Target::Slot(slot) => x.vars.set_slot(*slot, Some(value)),
                    Target::Builtin(write) => write(x, &value),
                }
                Flow::Through
            }
            Op::Break => {
                ran(x, *at, || "the directives after it do not run".to_owned());
                if std::mem::take(&mut x.route.uri_changed) {
                    x.target.origin = UriOrigin::Elsewhere;
                }
                Flow::Stop
            }
            Op::Return(status, text) => {
                ran(x, *at, || "answers".to_owned());
                run_return(x, cx, *status, text.as_ref())
            }
            Op::Rewrite(rewrite) => run_rewrite(x, cx, rewrite, *at, state),
            Op::If(block) => match block.condition.holds(x, cx, state.log, state.quote) {
                Err(status) => Flow::Status(status),
                Ok(false) => {
                    ran(x, *at, || "does not hold".to_owned());
                    Flow::Through
                }
                Ok(true) => {
                    ran(x, *at, || "holds".to_owned());
                    if let Some(location) = block.location {
                        x.route.location = location;
                        location_changed(x);
                    }
                    run(x, cx, &block.ops, state)
                }
            },
        };
        if !matches!(flow, Flow::Through) {
            return flow;
        }
    }
    Flow::Through
}

/// Records the result of a directive for traces.
fn ran(x: &Exchange, at: Pos, outcome: impl FnOnce() -> String) {
    x.record_event(|| Event::Ran(At::Pos(at), outcome()));
}

fn display(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text))
}

fn run_return(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16, text: Option<&Value>) -> Flow {
    let no_text = text.is_none_or(|t| t.constant() == Some(b""));
    if status >= 400 && no_text {
        return Flow::Status(status);
    }
    x.reply.status = status;
    let body = text.map(|t| t.to_vec(x, cx)).unwrap_or_default();
    reply::text(x, cx, status, body, None);
    Flow::Sent
}

fn run_rewrite(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    rewrite: &Rewrite,
    at: Pos,
    state: &mut Run,
) -> Flow {
    let log = state.log;
    debug_http!(x, "http script regex: \"{}\"", rewrite.regex.pattern);
    let uri = std::mem::take(&mut x.target.uri);
    let matched = rewrite.regex.exec(x, &uri);
    if let (true, Ok(matched)) = (log, matched) {
        let verb = if matched { "matches" } else { "does not match" };
        let text = Printable(&uri);
        let text = format_args!("\"{}\" {verb} \"{text}\"", rewrite.regex.pattern);
        x.log(Level::Notice, text);
    }
    x.target.uri = uri;
    match matched {
        Err(_) => return Flow::Status(500),
        Ok(false) => {
            ran(x, at, || {
                format!("does not match {}", display(&x.target.uri))
            });
            x.vars.captures.clear();
            return Flow::Through;
        }
        Ok(true) => {}
    }
    if let Flag::Redirect(status) = rewrite.flag {
        x.reply.location = rewrite.replacement.redirect(x, cx);
        ran(x, at, || {
            format!("redirects to {}", display(&x.reply.location))
        });
        if log {
            let text = Printable(&x.reply.location);
            let text = format_args!("rewritten redirect: \"{text}\"");
            x.log(Level::Notice, text);
        }
        return Flow::Status(status);
    }
    change_uri(x, cx, rewrite, at, state)
}

/// Changes the URI by a `rewrite` that matches and is no redirect.
fn change_uri(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    rewrite: &Rewrite,
    at: Pos,
    state: &mut Run,
) -> Flow {
    state.quote = false;
    x.route.internal = true;
    x.route.uri_changed = rewrite.flag != Flag::Break;
    match rewrite.flag {
        Flag::Break => x.target.origin = UriOrigin::Elsewhere,
        _ => x.target.differ(),
    }
    let (uri, args) = rewrite.replacement.uri(x, cx);
    if let Some(args) = args {
        x.target.args = args;
        x.target.has_args = true;
    }
    if state.log {
        let (uri, args) = (Printable(&uri), Printable(&x.target.args));
        let text = format_args!("rewritten data: \"{uri}\", args: \"{args}\"");
        x.log(Level::Notice, text);
    }
    ran(x, at, || match x.target.args.is_empty() {
        true => format!("the URI is {}", display(&uri)),
        false => format!(
            "the URI is {}, arguments {}",
            display(&uri),
            display(&x.target.args)
        ),
    });
    x.target.set_uri(&uri);
    if uri.is_empty() {
        let text = format_args!("the rewritten URI has a zero length");
        x.log(Level::Error, text);
        return Flow::Status(500);
    }
    if rewrite.flag == Flag::None {
        Flow::Through
    } else {
        Flow::Stop
    }
}
