//! `map`: a variable whose value is looked up by the value of others.
//!
//! Names are compared without case: exact ones first, then with `hostnames` the longest `*.example.com` or
//! `.example.com`, the longest `mail.*`, then expressions in file order, then the default.
//!
//! Source: nginx documentation, `ngx_http_map_module`.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive, Row, Text};
use server_base::regex::{FailedMatch, Regex};
use server_http::build::Build;
use server_http::conf_core::NameKind;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::names::NameTable;
use server_http::value::Value;
use server_http::vars::Compute;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "map",
    directives: &[ROWS],
    ..Module::EMPTY
};

const ROWS: &[Row<Build>] = &[Row {
    name: "map",
    contexts: Contexts::HTTP,
    arity: Arity::TAKE2,
    block: true,
    default: "",
    doc: "Creates a variable whose value depends on values of others.",
    syntax: "string $variable { ... }",
    apply: map,
}];

/// One `map`.
struct Map {
    source: Value,
    hostnames: bool,
    volatile: bool,
    names: NameTable,
    regexes: Vec<(Regex, usize)>,
    values: Values,
    default: Option<usize>,
}

fn map(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let source = Value::compile(b, d, d.word(0))?;
    let Some(name) = d.arg(1).strip_prefix(b"$").filter(|n| !n.is_empty()) else {
        return Err(ConfError::word(
            d,
            d.word(1),
            format!("invalid variable name \"{}\"", d.arg_str(1)),
        ));
    };
    let mut map = Map {
        source,
        hostnames: false,
        volatile: false,
        names: NameTable::default(),
        regexes: Vec::new(),
        values: Values::default(),
        default: None,
    };
    conf::each(b, d.items(), |b, line| map.line(b, line))?;
    map.names.shrink();
    map.values.finish();
    b.vars
        .define(name, Arc::new(map))
        .map_err(|e| ConfError::word(d, d.word(1), e))?;
    Ok(())
}

impl Map {
    fn line(&mut self, b: &mut Build, line: &Directive) -> Result<(), ConfError> {
        match (line.name.text.as_slice(), line.args.len()) {
            (b"hostnames", 0) => self.hostnames = true,
            (b"volatile", 0) => self.volatile = true,
            (key, 1) => return self.parameter(b, line, key),
            _ => return Err(ConfError::at(line, "invalid number of the map parameters")),
        }
        Ok(())
    }

    fn parameter(&mut self, b: &mut Build, line: &Directive, key: &[u8]) -> Result<(), ConfError> {
        let value = self.values.add(b, line)?;
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
                self.regexes.push((regex, value));
                Ok(())
            }
            [b'\\', name @ ..] => self.name(line, name, value),
            name => self.name(line, name, value),
        }
    }

    fn name(&mut self, line: &Directive, name: &[u8], value: usize) -> Result<(), ConfError> {
        let shown = String::from_utf8_lossy(name);
        let name = name.to_ascii_lowercase();
        let kind = if self.hostnames {
            NameKind::of(&name)
        } else {
            NameKind::Exact
        };
        if matches!(kind, NameKind::Invalid) {
            return Err(ConfError::at(
                line,
                format!("invalid hostname or wildcard \"{shown}\""),
            ));
        }
        if !self.names.add(&kind, &name, value) {
            return Err(ConfError::at(
                line,
                format!("conflicting parameter \"{shown}\""),
            ));
        }
        Ok(())
    }

    /// The value for `subject`.
    fn find(&self, x: &mut Exchange, subject: &[u8]) -> Option<usize> {
        let mut found = self.names.find(&subject.to_ascii_lowercase());
        if found.is_none() && !subject.is_empty() {
            // Where one cannot be finished, those behind it are not asked: the request gets 500.
            found = self
                .regexes
                .iter()
                .find(|(regex, _)| regex.exec(x, subject) != Ok(false))
                .filter(|_| x.failed_match != FailedMatch::New)
                .map(|(_, value)| *value);
        }
        found.or(self.default)
    }
}

/// The values of a `map`, equal texts once.
#[derive(Default)]
struct Values {
    /// Texts without variables, behind each other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The places of texts, while the block is read.
    known: HashMap<Text, usize>,
    /// Values with variables.
    compiled: Vec<Value>,
}

impl Values {
    /// Adds the value of a line; gives its index.
    fn add(&mut self, b: &mut Build, line: &Directive) -> Result<usize, ConfError> {
        let value = Value::compile(b, line, line.word(0))?;
        let Some(text) = value.constant() else {
            self.compiled.push(value);
            return Ok(self.compiled.len() * 2 - 1);
        };
        // Of a value without variables the text is what was written.
        let next = self.ends.len();
        let at = *self.known.entry(line.word(0).text.clone()).or_insert(next);
        if at == next {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
        Ok(at * 2)
    }

    fn finish(&mut self) {
        self.known = HashMap::new();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn of(&self, index: usize, x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        // Odd are those with variables.
        let at = index / 2;
        if index % 2 == 1 {
            return self.compiled[at].to_vec(x, cx);
        }
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes[start..self.ends[at]].to_vec()
    }
}

impl Compute for Map {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let mut subject = self.source.to_vec(x, cx);
        if self.hostnames && subject.last() == Some(&b'.') {
            subject.pop();
        }
        let value = self.find(x, &subject);
        Some(value.map_or(Vec::new(), |value| self.values.of(value, x, cx)))
    }

    fn volatile(&self) -> bool {
        self.volatile
    }
}
