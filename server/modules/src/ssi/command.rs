//! The SSI commands.
//!
//! As in nginx an `if` inside of an `if` is an error, and `else` and `elif` after it decide on their own.
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
    /// Text and commands count: they are in no branch that was not taken, and in no block.
    pub(super) output: bool,
    /// They are kept in a block.
    pub(super) in_block: bool,
    branch: Branch,
    /// A branch of this `if` was taken.
    taken: bool,
    encoding: Encoding,
    /// How dates are written, where the page says so.
    pub(super) timefmt: Option<Vec<u8>>,
    pub(super) errmsg: Vec<u8>,
}

/// Where the page is in an `if`; what follows the later one may follow the earlier one too.
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

/// A command as the page knows it.
struct CommandDef {
    name: &'static str,
    /// Names of parameters; an exclamation mark says that there must be one.
    params: &'static [&'static str],
    /// It follows an `if`, and an `else` or not.
    within: Option<Branch>,
    /// It counts whether there is output or not.
    always: bool,
    run: Run,
}

type Run =
    fn(&mut Page, &mut Exchange, &mut Ctx<'_>, &Params<'_>, &mut Vec<u8>) -> Result<Done, Failed>;

/// The result of a command.
pub(super) enum Done {
    /// All; what it puts out is put out.
    All,
    /// The body of a subrequest is what it puts out.
    Include(Box<Subrequest>),
}

/// Values of parameters, in the order in which the command knows them.
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
            // Where no block was begun, a branch that is not taken goes on.
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

    /// Does what a command says.
    ///
    /// # Errors
    /// It cannot be done; the log says why.
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

    /// Takes the branch if the expression holds and no branch before it was taken.
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

/// Whether an expression holds: a text that is not empty, or a text and another or a pattern.
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

/// Whether a text matches a pattern, whose groups are kept if it does.
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

/// Keeps text in the block that was begun last.
pub(super) fn keep(x: &mut Exchange, text: &[u8]) -> Result<Done, Failed> {
    if Shared::of(x).add_to_block(text) {
        return Ok(Done::All);
    }
    Err(failed(x, format_args!("no room for SSI blocks")))
}

/// A command as it is kept in a block.
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

/// Finds the values of a command's parameters.
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
    // All that can be wrong with the command is found before anything begins.
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
        // The variable exists from here on, if empty: commands behind this one may name it while the subrequest runs.
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
