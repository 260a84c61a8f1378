//! `map`: a variable whose value is looked up by the value of others.
//!
//! Names are compared without case: exact ones first, then with `hostnames` the longest `*.example.com` or
//! `.example.com`, the longest `mail.*`, then expressions in file order, then the default.
//!
//! Source: nginx documentation, `ngx_http_map_module`.

use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive, Row};
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
    values: Vec<Value>,
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
        values: Vec::new(),
        default: None,
    };
    conf::each(b, d.items(), |b, line| map.line(b, line))?;
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
        let value = self.values.len();
        self.values.push(Value::compile(b, line, line.word(0))?);
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
    fn find(&self, x: &mut Exchange, subject: &[u8]) -> Option<&Value> {
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
        found.or(self.default).map(|value| &self.values[value])
    }
}

impl Compute for Map {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let mut subject = self.source.to_vec(x, cx);
        if self.hostnames && subject.last() == Some(&b'.') {
            subject.pop();
        }
        let value = self.find(x, &subject);
        Some(value.map(|value| value.to_vec(x, cx)).unwrap_or_default())
    }

    fn volatile(&self) -> bool {
        self.volatile
    }
}
