//! `map`: a variable with a value looked up by the values of other variables.
//!
//! Names are compared without case: exact ones first, then with `hostnames` the longest `*.example.com` or
//! `.example.com`, the longest `mail.*`, then expressions in file order, then the default.
//!
//! Source: nginx documentation, `ngx_http_map_module`.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_base::regex::{FailedMatch, ListedRegex, Regex};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::names::{NameKind, NameTable};
use server_http::string_pool::{Interner, StringPool};
use server_http::value::Value;
use server_http::vars::Compute;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "map",
    directives: &[ROWS],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Creates a variable whose value depends on values of others.
    block "map": Contexts::HTTP, TAKE2, "", "string $variable { ... }" => map;
}

/// One `map`.
struct Map {
    source: Value,
    hostnames: bool,
    volatile: bool,
    /// Names, each with the index of a [`ValueRef`].
    names: NameTable,
    regexes: Vec<(ListedRegex, ValueRef)>,
    default: ValueRef,
    texts: StringPool,
    compiled: Vec<Value>,
}

/// The value of a line: few have variables, and of the rest many are equal.
#[derive(Clone, Copy)]
enum ValueRef {
    /// The text at this offset.
    Text(usize),
    /// The value with variables by this index.
    Compiled(usize),
}

impl ValueRef {
    fn number(self) -> usize {
        match self {
            Self::Text(at) => at * 2,
            Self::Compiled(at) => at * 2 + 1,
        }
    }

    fn of(number: usize) -> Self {
        match number % 2 {
            0 => Self::Text(number / 2),
            _ => Self::Compiled(number / 2),
        }
    }
}

fn map(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let source = Value::compile(b, d, d.word(0))?;
    let Some(name) = d.arg(1).strip_prefix(b"$").filter(|n| !n.is_empty()) else {
        return Err(ConfError::word(
            d,
            d.word(1),
            format!("invalid variable name \"{}\"", d.arg_str(1)),
        ));
    };
    let mut draft = Draft::default();
    conf::each(b, d.items(), |b, line| draft.line(b, line))?;
    b.vars
        .define(name, Arc::new(draft.finish(source)))
        .map_err(|e| ConfError::word(d, d.word(1), e))?;
    Ok(())
}

/// The contents of a block while it is parsed.
#[derive(Default)]
struct Draft {
    hostnames: bool,
    volatile: bool,
    names: NameTable,
    regexes: Vec<(ListedRegex, ValueRef)>,
    default: Option<ValueRef>,
    texts: Interner,
    compiled: Vec<Value>,
    /// Buffer for a name in lower case, reused so that a million lines need no allocation each.
    lower: Vec<u8>,
}

impl Draft {
    fn line(&mut self, b: &mut ConfigBuilder, line: &Directive) -> Result<(), ConfError> {
        match (line.name.text.as_slice(), line.args.len()) {
            (b"hostnames", 0) => self.hostnames = true,
            (b"volatile", 0) => self.volatile = true,
            (key, 1) => return self.parameter(b, line, key),
            _ => return Err(ConfError::at(line, "invalid number of the map parameters")),
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        b: &mut ConfigBuilder,
        line: &Directive,
        key: &[u8],
    ) -> Result<(), ConfError> {
        let value = self.value(b, line)?;
        match key {
            b"default" => match self.default.replace(value) {
                None => Ok(()),
                Some(_) => Err(ConfError::at(line, "duplicate default map parameter")),
            },
            [b'~', pattern @ ..] => {
                let (pattern, caseless) = match pattern {
                    [b'*', rest @ ..] => (rest, true),
                    _ => (pattern, false),
                };
                let regex = Regex::compile(b, line, &line.name, pattern, caseless)?;
                self.regexes.push((ListedRegex::new(regex), value));
                Ok(())
            }
            [b'\\', name @ ..] => self.name(line, name, value),
            name => self.name(line, name, value),
        }
    }

    fn value(&mut self, b: &mut ConfigBuilder, line: &Directive) -> Result<ValueRef, ConfError> {
        let text = line.arg(0);
        if memchr::memchr(b'$', text).is_none() {
            return Ok(ValueRef::Text(self.texts.add(text)));
        }
        self.compiled.push(Value::compile(b, line, line.word(0))?);
        Ok(ValueRef::Compiled(self.compiled.len() - 1))
    }

    fn name(&mut self, line: &Directive, name: &[u8], value: ValueRef) -> Result<(), ConfError> {
        self.lower.clear();
        self.lower.extend(name.iter().map(u8::to_ascii_lowercase));
        let kind = if self.hostnames {
            NameKind::of(&self.lower)
        } else {
            NameKind::Exact
        };
        let wrong = match kind {
            NameKind::Invalid => "invalid hostname or wildcard",
            _ if self.names.add(&kind, &self.lower, value.number()) => return Ok(()),
            _ => "conflicting parameter",
        };
        let shown = String::from_utf8_lossy(name);
        Err(ConfError::at(line, format!("{wrong} \"{shown}\"")))
    }

    fn finish(mut self, source: Value) -> Map {
        self.names.shrink();
        let default = self.default;
        Map {
            source,
            hostnames: self.hostnames,
            volatile: self.volatile,
            names: self.names,
            regexes: self.regexes,
            default: default.unwrap_or_else(|| ValueRef::Text(self.texts.add(b""))),
            texts: self.texts.finish(),
            compiled: self.compiled,
        }
    }
}

impl Map {
    fn find(&self, x: &mut Exchange, cx: &mut Ctx<'_>, mut subject: Vec<u8>) -> Vec<u8> {
        // Expressions match the subject in its original case.
        let whole = (!self.regexes.is_empty()).then(|| subject.clone());
        subject.make_ascii_lowercase();
        if let Some(number) = self.names.find(&subject) {
            return self.value(x, cx, ValueRef::of(number));
        }
        let whole = whole.filter(|whole| !whole.is_empty());
        whole
            .and_then(|whole| self.by_regex(x, cx, &whole))
            .unwrap_or_else(|| self.value(x, cx, self.default))
    }

    /// The value of the first matching expression. The value may use the captures of the match.
    fn by_regex(&self, x: &mut Exchange, cx: &mut Ctx<'_>, subject: &[u8]) -> Option<Vec<u8>> {
        x.match_for_value(|x| {
            let found = self.first_regex(x, subject)?;
            Some(self.value(x, cx, found))
        })
    }

    fn value(&self, x: &mut Exchange, cx: &mut Ctx<'_>, of: ValueRef) -> Vec<u8> {
        match of {
            ValueRef::Text(at) => self.texts.at(at).to_vec(),
            ValueRef::Compiled(at) => self.compiled[at].to_vec(x, cx),
        }
    }

    fn first_regex(&self, x: &mut Exchange, subject: &[u8]) -> Option<ValueRef> {
        // An expression that exceeds its limits ends the search: the request gets 500.
        let mut regexes = self.regexes.iter();
        regexes
            .find(|(regex, _)| regex.exec(x, subject) != Ok(false))
            .filter(|_| x.vars.failed_match != FailedMatch::New)
            .map(|(_, value)| *value)
    }
}

impl Compute for Map {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let mut subject = self.source.to_vec(x, cx);
        if self.hostnames && subject.last() == Some(&b'.') {
            subject.pop();
        }
        Some(self.find(x, cx, subject))
    }

    fn volatile(&self) -> bool {
        self.volatile
    }
}
