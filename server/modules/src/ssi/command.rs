//! The SSI commands.
//!
//! As in nginx an `if` within an `if` is an error. Its `else` and `elif` are then evaluated on their own.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`.

use engines::http::{Escape, escape, escape_html};
use server_base::errlog::Printable;
use server_base::regex;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange, Subrequest};

use super::expand::{Failed, expand, expand_uri, failed};
use super::parse::Command;
use super::shared::{Shared, append};

/// The state of the page so far.
pub(super) struct Page {
    /// Whether text and commands are effective: outside of a skipped branch and of a block.
    pub(super) output: bool,
    /// Whether text is stored in a block.
    pub(super) in_block: bool,
    branch: Branch,
    /// Whether a branch of this `if` was selected.
    taken: bool,
    encoding: Encoding,
    /// `timefmt`, if the page sets it.
    pub(super) timefmt: Option<Vec<u8>>,
    pub(super) errmsg: Vec<u8>,
}

/// Position within an `if`. A command allowed behind a later position is compared by order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Branch {
    Outside,
    If,
    Else,
}

#[derive(Clone, Copy)]
enum Encoding {
    None,
    Url,
    Entity,
}

/// The definition of a command.
struct CommandDef {
    name: &'static str,
    /// Names of parameters; `!` marks a required one.
    params: &'static [&'static str],
    /// The position within an `if` that the command needs.
    within: Option<Branch>,
    /// The command runs in skipped branches, too.
    always: bool,
    run: Run,
}

type Run =
    fn(&mut Page, &mut Exchange, &mut Ctx<'_>, &Params<'_>, &mut Vec<u8>) -> Result<Done, Failed>;

/// The result of a command.
pub(super) enum Done {
    /// The command is complete, with its output.
    All,
    /// The output is the body of a subrequest.
    Include(Box<Subrequest>),
}

/// Values of parameters, in the order of the definition.
struct Params<'c>(Vec<Option<&'c [u8]>>);

impl<'c> Params<'c> {
    fn get(&self, at: usize) -> Option<&'c [u8]> {
        self.0.get(at).copied().flatten()
    }

    fn needed(&self, at: usize) -> &'c [u8] {
        self.get(at).unwrap_or_default()
    }
}

const COMMANDS: &[CommandDef] = &[
    CommandDef {
        name: "include",
        params: &["virtual", "file", "wait", "set", "stub"],
        within: None,
        always: false,
        run: |_, x, cx, params, _| {
            include(x, cx, params).map(|child| Done::Include(Box::new(child)))
        },
    },
    CommandDef {
        name: "echo",
        params: &["var!", "default", "encoding"],
        within: None,
        always: false,
        run: Page::echo,
    },
    CommandDef {
        name: "config",
        params: &["errmsg", "timefmt"],
        within: None,
        always: false,
        run: |page, _, _, params, _| {
            if let Some(errmsg) = params.get(0) {
                page.errmsg = errmsg.to_vec();
            }
            if let Some(timefmt) = params.get(1) {
                page.timefmt = Some(timefmt.to_vec());
            }
            Ok(Done::All)
        },
    },
    CommandDef {
        name: "set",
        params: &["var!", "value!"],
        within: None,
        always: false,
        run: |_, x, cx, params, _| {
            let value = expand(x, cx, params.needed(1))?;
            set(x, params.needed(0), value)
        },
    },
    CommandDef {
        name: "if",
        params: &["expr!"],
        within: None,
        always: false,
        run: |page, x, cx, params, _| {
            if page.branch != Branch::Outside {
                let text = format_args!("the \"if\" command inside the \"if\" command");
                return Err(failed(x, text));
            }
            page.test(x, cx, params.needed(0))
        },
    },
    CommandDef {
        name: "elif",
        params: &["expr!"],
        within: Some(Branch::If),
        always: false,
        run: |page, x, cx, params, _| page.test(x, cx, params.needed(0)),
    },
    CommandDef {
        name: "else",
        params: &[],
        within: Some(Branch::If),
        always: false,
        run: |page, _, _, _, _| {
            page.output = !page.taken;
            page.branch = Branch::Else;
            Ok(Done::All)
        },
    },
    CommandDef {
        name: "endif",
        params: &[],
        within: Some(Branch::Else),
        always: false,
        run: |page, _, _, _, _| {
            page.output = true;
            page.taken = false;
            page.branch = Branch::Outside;
            Ok(Done::All)
        },
    },
    CommandDef {
        name: "block",
        params: &["name!"],
        within: None,
        always: false,
        run: |page, x, _, params, _| {
            Shared::of(x).begin_block(params.needed(0).to_vec());
            page.output = false;
            page.in_block = true;
            Ok(Done::All)
        },
    },
    CommandDef {
        name: "endblock",
        params: &[],
        within: None,
        always: true,
        run: |page, _, _, _, _| {
            // Without a block in progress a skipped branch stays skipped.
            page.output |= page.in_block;
            page.in_block = false;
            Ok(Done::All)
        },
    },
];

impl Page {
    pub(super) fn new() -> Self {
        Self {
            output: true,
            in_block: false,
            branch: Branch::Outside,
            taken: false,
            encoding: Encoding::Entity,
            timefmt: None,
            errmsg: ERRMSG.to_vec(),
        }
    }

    /// Runs a command.
    ///
    /// # Errors
    /// The command failed; the reason has been logged.
    pub(super) fn run(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        command: &Command,
        out: &mut Vec<u8>,
    ) -> Result<Done, Failed> {
        let name = || Printable(&command.name);
        let known = COMMANDS.iter();
        let Some(known) = known
            .clone()
            .find(|known| known.name.as_bytes() == command.name)
        else {
            if !self.output {
                return Ok(Done::All);
            }
            return Err(failed(
                x,
                format_args!("invalid SSI command: \"{}\"", name()),
            ));
        };
        if !self.output && !known.always {
            if self.in_block {
                return keep(x, &as_written(command));
            }
            if known.within.is_none() {
                return Ok(Done::All);
            }
        }
        if let Some(within) = known.within
            && (self.branch == Branch::Outside || self.branch > within)
        {
            let text = format_args!("invalid context of SSI command: \"{}\"", name());
            return Err(failed(x, text));
        }
        let params = sort(x, known, command)?;
        debug_http!(x, "ssi {}", name());
        (known.run)(self, x, cx, &params, out)
    }

    fn echo(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Done, Failed> {
        let mut value = Vec::new();
        if !append(x, cx, params.needed(0), &mut value) {
            value = params.get(1).unwrap_or(b"(none)").to_vec();
        }
        if value.is_empty() {
            return Ok(Done::All);
        }
        match params.get(2) {
            None => {}
            Some(b"none") => self.encoding = Encoding::None,
            Some(b"url") => self.encoding = Encoding::Url,
            Some(b"entity") => self.encoding = Encoding::Entity,
            Some(other) => {
                let other = Printable(other);
                failed(
                    x,
                    format_args!("unknown encoding \"{other}\" in the \"echo\" command"),
                );
            }
        }
        match self.encoding {
            Encoding::None => out.extend_from_slice(&value),
            Encoding::Url => escape(&value, Escape::Html, out),
            Encoding::Entity => escape_html(&value, out),
        }
        Ok(Done::All)
    }

    /// Selects the branch if the expression is true and no earlier branch was selected.
    fn test(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>, expr: &[u8]) -> Result<Done, Failed> {
        if self.taken {
            self.output = false;
            return Ok(Done::All);
        }
        self.output = holds(x, cx, expr)?;
        self.taken = self.output;
        self.branch = Branch::If;
        Ok(Done::All)
    }
}

/// Evaluates an expression: a text is true if it is not empty, or it is compared with another text or a pattern.
fn holds(x: &mut Exchange, cx: &mut Ctx<'_>, expr: &[u8]) -> Result<bool, Failed> {
    let is_left = |byte: &u8| byte.is_ascii_alphanumeric() || b"${}_\"'".contains(byte);
    let end = expr
        .iter()
        .position(|byte| !is_left(byte))
        .unwrap_or(expr.len());
    let left = expand(x, cx, &expr[..end].to_ascii_lowercase())?;
    let rest = trim_spaces(&expr[end..]);
    if rest.is_empty() {
        return Ok(!left.is_empty());
    }
    let (negative, rest) = match rest {
        [b'=', rest @ ..] => (false, rest),
        [b'!', b'=', rest @ ..] => (true, rest),
        _ => return Err(invalid(x, expr)),
    };
    let equal = match trim_spaces(rest) {
        [b'/', pattern @ .., b'/'] => matches(x, cx, pattern, left)?,
        [b'/', _, ..] => return Err(invalid(x, expr)),
        [b'\\', right @ ..] if right.first() == Some(&b'/') => left == expand(x, cx, right)?,
        right => left == expand(x, cx, right)?,
    };
    Ok(equal != negative)
}

fn trim_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ');
    &text[start.unwrap_or(text.len())..]
}

fn invalid(x: &Exchange, expr: &[u8]) -> Failed {
    let expr = Printable(expr);
    failed(x, format_args!("invalid expression in \"{expr}\""))
}

/// Whether a text matches a pattern; stores the groups of a match.
fn matches(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    pattern: &[u8],
    text: Vec<u8>,
) -> Result<bool, Failed> {
    let pattern = expand(x, cx, pattern)?;
    let found = regex::match_once(&pattern, &text);
    let Some(groups) = found.map_err(|why| failed(x, format_args!("{why}")))? else {
        return Ok(false);
    };
    for group in &groups {
        if let Some(name) = &group.name {
            set(x, name.as_bytes(), group.text.clone())?;
        }
    }
    Shared::of(x).capture(groups.into_iter().map(|group| group.text).collect());
    Ok(true)
}

fn set(x: &mut Exchange, name: &[u8], value: Vec<u8>) -> Result<Done, Failed> {
    if Shared::of(x).set(name, value) {
        return Ok(Done::All);
    }
    let name = Printable(name);
    Err(failed(
        x,
        format_args!("no room for the value of \"{name}\" variable"),
    ))
}

/// Appends text to the current block.
pub(super) fn keep(x: &mut Exchange, text: &[u8]) -> Result<Done, Failed> {
    if Shared::of(x).add_to_block(text) {
        return Ok(Done::All);
    }
    Err(failed(x, format_args!("no room for SSI blocks")))
}

/// Returns the text of a command, for storage in a block.
fn as_written(command: &Command) -> Vec<u8> {
    let mut text = [b"<!--#", command.name.as_slice()].concat();
    for (key, value) in &command.params {
        // A value between single quotes may hold a double one.
        let quote = if value.contains(&b'"') { b"'" } else { b"\"" };
        let pieces: [&[u8]; 6] = [b" ", key, b"=", quote, value, quote];
        text.extend(pieces.concat());
    }
    text.extend_from_slice(b" -->");
    text
}

/// Sorts the parameters of a command by its definition, and checks them.
fn sort<'c>(x: &Exchange, known: &CommandDef, command: &'c Command) -> Result<Params<'c>, Failed> {
    let mut values = vec![None; known.params.len()];
    for (key, value) in &command.params {
        let is_key = |param: &str| param.trim_end_matches('!').as_bytes() == key;
        let shown = Printable(key);
        let Some(at) = known.params.iter().position(|&param| is_key(param)) else {
            let text = format_args!(
                "invalid parameter name: \"{shown}\" in \"{}\" SSI command",
                known.name
            );
            return Err(failed(x, text));
        };
        if values[at].replace(value.as_slice()).is_some() {
            let text = format_args!(
                "duplicate \"{shown}\" parameter in \"{}\" SSI command",
                known.name
            );
            return Err(failed(x, text));
        }
    }
    for (param, value) in known.params.iter().zip(&values) {
        if let Some(param) = param.strip_suffix('!')
            && value.is_none()
        {
            let text = format_args!(
                "mandatory \"{param}\" parameter is absent in \"{}\" SSI command",
                known.name
            );
            return Err(failed(x, text));
        }
    }
    Ok(Params(values))
}

fn include(x: &mut Exchange, cx: &mut Ctx<'_>, params: &Params<'_>) -> Result<Subrequest, Failed> {
    let (uri, file, wait) = (params.get(0), params.get(1), params.get(2));
    let (variable, stub) = (params.get(3), params.get(4));
    let (uri, waited) = match (uri, file, wait) {
        (Some(uri), Some(file), _) => {
            let (uri, file) = (Printable(uri), Printable(file));
            let text = format_args!("inclusion may be either virtual=\"{uri}\" or file=\"{file}\"");
            return Err(failed(x, text));
        }
        (None, None, _) => {
            let text = format_args!("no parameter in \"include\" SSI command");
            return Err(failed(x, text));
        }
        (None, Some(file), Some(_)) => {
            let file = Printable(file);
            let text = format_args!("\"wait\" cannot be used with file=\"{file}\"");
            return Err(failed(x, text));
        }
        (None, Some(file), None) => (file, true),
        (Some(uri), None, None) => (uri, false),
        (Some(uri), None, Some(wait)) if wait.eq_ignore_ascii_case(b"no") => (uri, false),
        (Some(uri), None, Some(wait)) if wait.eq_ignore_ascii_case(b"yes") => (uri, true),
        (Some(_), None, Some(wait)) => {
            let wait = Printable(wait);
            let text = format_args!("invalid value \"{wait}\" in the \"wait\" parameter");
            return Err(failed(x, text));
        }
    };
    if variable.is_some() && stub.is_some() {
        let text = "\"set\" and \"stub\" cannot be used together in \"include\" SSI command";
        return Err(failed(x, format_args!("{text}")));
    }
    // All errors of the command are found before the subrequest begins.
    let (path, args) = expand_uri(x, cx, uri)?;
    let stub = match stub {
        None => None,
        Some(name) => match Shared::of(x).block(name).map(<[u8]>::to_vec) {
            Some(block) => Some(block),
            None => {
                let name = Printable(name);
                let text = format_args!("\"stub\"=\"{name}\" for \"include\" not found");
                return Err(failed(x, text));
            }
        },
    };
    let mut child = Subrequest::open(x, cx, &path, &args).map_err(|_| Failed)?;
    if let Some(stub) = stub {
        child = child.or_else(stub, x.reply.content_type.media_type().to_vec());
    }
    if waited {
        child = child.waited();
    }
    if let Some(name) = variable {
        // The variable exists from now on, with an empty value: later commands may use it while the subrequest runs.
        let name = name.to_vec();
        if !append(x, cx, &name, &mut Vec::new()) {
            set(x, &name, Vec::new())?;
        }
        child = child.held_for(move |x, status, body| {
            if status < 300 {
                let _ = set(x, &name, body);
            }
        });
    }
    Ok(child)
}

/// The output of a failed command, unless the page sets another one.
const ERRMSG: &[u8] = b"[an error occurred while processing the directive]";
