//! The condition of `if`: a variable, a comparison, a match, or a test of a file.

use conf::{ConfError, Directive};
use server_base::errlog::{Level, Printable};
use server_base::regex::Regex;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::paths;
use server_http::value::Value;

use super::replace::quoted;

/// A compiled condition.
pub(super) enum Condition {
    /// Not empty and not `0`.
    True(Value),
    /// `=` (true) or `!=` (false).
    Equal(Value, Value, bool),
    /// `~`, `~*` (true), `!~`, `!~*` (false).
    Match(Value, Regex, bool),
    /// `-f`, `-d`, `-e`, `-x`, and their negations.
    File(FileTest, Value, bool),
}

/// The kinds of file tests.
#[derive(Clone, Copy)]
pub(super) enum FileTest {
    /// A regular file.
    Plain,
    /// A directory.
    Directory,
    /// Anything.
    Exists,
    /// Something executable.
    Executable,
}

impl Condition {
    pub(super) fn compile(b: &mut ConfigBuilder, d: &Directive) -> Result<Self, ConfError> {
        let words = strip_parentheses(d)?;
        let invalid = |n: usize| {
            let text =
                String::from_utf8_lossy(words.get(n).map_or(b"", Vec::as_slice)).into_owned();
            ConfError::word(d, d.word(0), format!("invalid condition \"{text}\""))
        };
        match words.first().map_or(&b""[..], Vec::as_slice) {
            [b'$', _, ..] => Self::of_variable(b, d, &words),
            [b'-', kind] => Self::of_file(b, d, *kind, &words, true).ok_or_else(|| invalid(0))?,
            [b'!', b'-', kind] => {
                Self::of_file(b, d, *kind, &words, false).ok_or_else(|| invalid(0))?
            }
            _ => Err(invalid(0)),
        }
    }

    fn of_variable(
        b: &mut ConfigBuilder,
        d: &Directive,
        words: &[Vec<u8>],
    ) -> Result<Self, ConfError> {
        let word = d.word(0);
        let left = Value::compile_bytes(b, d, word, &words[0])?;
        let shown = |w: &[u8]| String::from_utf8_lossy(w).into_owned();
        match words {
            [_] => Ok(Self::True(left)),
            [_, op, right] => match op.as_slice() {
                b"=" | b"!=" => {
                    let right = Value::compile_bytes(b, d, word, right)?;
                    Ok(Self::Equal(left, right, op == b"="))
                }
                b"~" | b"~*" | b"!~" | b"!~*" => {
                    let regex = Regex::compile(b, d, word, right, op.ends_with(b"*"))?;
                    Ok(Self::Match(left, regex, !op.starts_with(b"!")))
                }
                _ => Err(ConfError::word(
                    d,
                    word,
                    format!("unexpected \"{}\" in condition", shown(op)),
                )),
            },
            _ => Err(ConfError::word(
                d,
                word,
                format!("invalid condition \"{}\"", shown(&words[0])),
            )),
        }
    }

    fn of_file(
        b: &mut ConfigBuilder,
        d: &Directive,
        kind: u8,
        words: &[Vec<u8>],
        positive: bool,
    ) -> Option<Result<Self, ConfError>> {
        let test = match kind {
            b'f' => FileTest::Plain,
            b'd' => FileTest::Directory,
            b'e' => FileTest::Exists,
            b'x' => FileTest::Executable,
            _ => return None,
        };
        let [_, path] = words else { return None };
        Some(
            Value::compile_bytes(b, d, d.word(0), path)
                .map(|value| Self::File(test, value, positive)),
        )
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    /// A status to answer with.
    pub(super) fn holds(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        log: bool,
        quote: bool,
    ) -> Result<bool, u16> {
        match self {
            Self::True(value) => Ok(value.is_true(x, cx)),
            Self::Equal(left, right, equal) => {
                let right = quoted(right, x, cx, quote);
                Ok((left.to_vec(x, cx) == right) == *equal)
            }
            Self::Match(value, regex, positive) => {
                let subject = value.to_vec(x, cx);
                let hit = regex.exec(x, &subject).map_err(|_| 500u16)?;
                if !hit {
                    x.vars.captures.clear();
                }
                if log {
                    let verb = if hit { "matches" } else { "does not match" };
                    let text = Printable(&subject);
                    let text = format_args!("\"{}\" {verb} \"{text}\"", regex.pattern);
                    x.log(Level::Notice, text);
                }
                Ok(hit == *positive)
            }
            Self::File(test, path, positive) => {
                let path = quoted(path, x, cx, quote);
                Ok(file_test(x, cx, *test, &path) == *positive)
            }
        }
    }
}

fn file_test(x: &mut Exchange, cx: &mut Ctx<'_>, test: FileTest, path: &[u8]) -> bool {
    let policy = paths::policy(x, cx, path);
    match cx.files.stat(path, &policy) {
        Ok(meta) => match test {
            FileTest::Plain => meta.is_file,
            FileTest::Directory => meta.is_dir,
            FileTest::Exists => meta.is_file || meta.is_dir,
            FileTest::Executable => meta.mode & OWNER_MAY_EXECUTE != 0,
        },
        Err(error) => {
            if !error.is_missing() {
                paths::log_failed(x, Level::Crit, path, error);
            }
            false
        }
    }
}

/// The words between the parentheses.
fn strip_parentheses(d: &Directive) -> Result<Vec<Vec<u8>>, ConfError> {
    let mut words: Vec<Vec<u8>> = d.args.iter().map(|w| w.text.to_vec()).collect();
    let bad = |n: usize| {
        ConfError::word(
            d,
            d.word(n),
            format!("invalid condition \"{}\"", d.arg_str(n)),
        )
    };
    match words.first_mut() {
        Some(first) if first.starts_with(b"(") => {
            first.remove(0);
        }
        _ => return Err(bad(0)),
    }
    let last = d.args.len() - 1;
    if words[last].pop() != Some(b')') {
        return Err(bad(last));
    }
    if words[0].is_empty() {
        words.remove(0);
    }
    if words.last().is_some_and(Vec::is_empty) && !d.args[last].quoted {
        words.pop();
    }
    Ok(words)
}

/// The permission that `-x` tests.
const OWNER_MAY_EXECUTE: u32 = 0o100;
