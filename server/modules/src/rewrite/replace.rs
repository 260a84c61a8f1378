//! The replacement of `rewrite`: a URI with arguments, or the target of a redirect.
//!
//! Captures come from the decoded URI. In arguments and redirects they are escaped again if the target of the request
//! was escaped.

use conf::{ConfError, Directive, Word};
use engines::http::{Escape, escape};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::value::{Part, Value};
use server_http::vars;

/// A compiled replacement.
pub(super) struct Replacement {
    /// The part before the first `?`.
    path: Value,
    /// After it.
    args: Option<Value>,
    /// Whether the request's arguments are appended: no `?` at the end.
    add_args: bool,
}

impl Replacement {
    pub(super) fn compile(
        b: &mut ConfigBuilder,
        d: &Directive,
        word: &Word,
    ) -> Result<Self, ConfError> {
        let (text, add_args) = match word.text.strip_suffix(b"?") {
            Some(text) => (text, false),
            None => (word.text.as_slice(), true),
        };
        let (path, args) = match text.iter().position(|c| *c == b'?') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        Ok(Self {
            path: Value::compile_bytes(b, d, word, path)?,
            args: match args {
                Some(args) => Some(Value::compile_bytes(b, d, word, args)?),
                None => None,
            },
            add_args,
        })
    }

    /// The new URI and, if they change, arguments.
    pub(super) fn uri(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
        let uri = self.path.to_vec(x, cx);
        let Some(args) = &self.args else {
            return (uri, (!self.add_args).then(Vec::new));
        };
        let mut new = quoted(args, x, cx, true);
        if self.add_args && !x.target.args.is_empty() {
            new.push(b'&');
            new.extend_from_slice(&x.target.args);
        }
        (uri, Some(new))
    }

    /// The target of a redirect.
    pub(super) fn redirect(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        let mut raw = quoted(&self.path, x, cx, true);
        if let Some(args) = &self.args {
            raw.push(b'?');
            raw.append(&mut quoted(args, x, cx, true));
        }
        let mut out = unescape_redirect(&raw);
        if self.add_args && !x.target.args.is_empty() {
            out.push(if self.args.is_some() { b'&' } else { b'?' });
            out.extend_from_slice(&x.target.args);
        }
        out
    }
}

/// Evaluates a value. Captures are escaped if `quote` is set and the target was escaped.
pub(super) fn quoted(value: &Value, x: &mut Exchange, cx: &mut Ctx<'_>, quote: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for part in &value.parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text),
            Part::Var(id) => {
                vars::append(*id, x, cx, &mut out);
            }
            Part::Capture(n) if quote && x.target.quoted_uri => {
                escape(x.vars.captures.get(usize::from(*n)), Escape::Args, &mut out);
            }
            Part::Capture(n) => out.extend_from_slice(x.vars.captures.get(usize::from(*n))),
        }
    }
    out
}

/// Decodes the characters that need no escape in the path of a redirect; the query is unchanged.
fn unescape_redirect(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&b, after)) = rest.split_first() {
        if b == b'?' {
            out.extend_from_slice(rest);
            return out;
        }
        let decoded = (b == b'%')
            .then(|| after.get(..2).and_then(hex_pair))
            .flatten();
        match decoded {
            Some(b'?') => {
                out.push(b'?');
                out.extend_from_slice(&after[2..]);
                return out;
            }
            Some(c @ b'&'..0x7f) => {
                out.push(c);
                rest = &after[2..];
            }
            _ => {
                out.push(b);
                rest = after;
            }
        }
    }
    out
}

fn hex_pair(pair: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    Some(digit(pair[0])? << 4 | digit(pair[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_what_must_stay_escaped() {
        assert_eq!(unescape_redirect(b"/a%20b%7E?%7E"), b"/a%20b~?%7E");
        assert_eq!(unescape_redirect(b"/%zz%"), b"/%zz%");
        assert_eq!(unescape_redirect(b"/%25%E4"), b"/%25%E4");
    }
}
