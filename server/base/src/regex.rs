//! Regular expressions: PCRE2 with JIT, a match limit, and captures that become variables.
//!
//! Numbered captures live in a [`MatchState`] until the next match; named ones are variables. A match that cannot be finished
//! is neither a match nor none: it is logged, and the request that needed it is answered with 500.

mod filter;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use filter::Filter;
use pcre2::bytes::CaptureLocations;

use crate::config::ConfigContext;
use crate::errlog::{Printable, Shown};

/// A compiled expression with the variables that its named groups set; equal ones of a configuration are one.
#[derive(Clone, Debug)]
pub struct Regex(Arc<Compiled>);

impl Deref for Regex {
    type Target = Compiled;

    fn deref(&self) -> &Compiled {
        &self.0
    }
}

/// An expression of a list. The list stores its filter, so that an expression without a match costs a comparison. Its
/// code is not touched.
#[derive(Clone, Debug)]
pub struct ListedRegex {
    filter: Filter,
    regex: Regex,
}

/// Compiled expressions of a configuration that is being read, by pattern and caselessness. Thousands of servers have equal
/// expressions, and compiling one takes longer than reading its server.
#[derive(Default)]
pub struct RegexCache(HashMap<(Vec<u8>, bool), Regex>);

/// The compiled code of a [`Regex`].
#[derive(Debug)]
pub struct Compiled {
    inner: pcre2::bytes::Regex,
    filter: Filter,
    /// Pattern as written, for the log.
    pub pattern: String,
    /// Number of groups, the whole match not counted.
    pub groups: usize,
    names: Vec<(usize, usize)>,
}

/// The match failed to finish within its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchLimit {
    /// The library's error code, which is negative.
    code: i32,
}

impl MatchLimit {
    /// The error in nginx's words.
    pub fn display<'a>(self, subject: &'a [u8], pattern: &'a str) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let (code, subject) = (self.code, Shown(subject));
            write!(
                f,
                "pcre2_match() failed: {code} on \"{subject}\" using \"{pattern}\""
            )
        })
    }
}

impl From<pcre2::Error> for MatchLimit {
    fn from(error: pcre2::Error) -> Self {
        Self { code: error.code() }
    }
}

/// The state that serving matches update: an exchange.
pub trait MatchState {
    /// The captures, which a match is about to replace.
    fn captures(&mut self) -> &mut Captures;

    /// Assigns the slot of a variable.
    fn set_slot(&mut self, slot: usize, value: Option<Vec<u8>>);

    /// A match could not be finished; the message has the reason.
    fn match_failed(&mut self, message: fmt::Arguments<'_>);
}

/// Whether a match of an exchange could not be finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailedMatch {
    /// None so far.
    #[default]
    None,
    /// Matching failed, and the request has not been answered for it yet.
    New,
    /// The request is answered with 500, or is past an answer.
    Answered,
}

impl Regex {
    /// Compiles a directive's pattern; named groups are registered as variables.
    ///
    /// # Errors
    /// The pattern's syntax error, in nginx's words.
    pub fn compile(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        word: &Word,
        pattern: &[u8],
        caseless: bool,
    ) -> Result<Self, ConfError> {
        let key = (pattern.to_vec(), caseless);
        if let Some(known) = cx.regexes().0.get(&key) {
            return Ok(known.clone());
        }
        let made = Self(Arc::new(Compiled::new(cx, d, word, pattern, caseless)?));
        cx.regexes().0.insert(key, made.clone());
        Ok(made)
    }
}

impl Compiled {
    fn new(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        word: &Word,
        pattern: &[u8],
        caseless: bool,
    ) -> Result<Self, ConfError> {
        let text = String::from_utf8_lossy(pattern).into_owned();
        let limited = format!("(*LIMIT_MATCH={MATCH_LIMIT}){text}");
        let inner = pcre2::bytes::RegexBuilder::new()
            .caseless(caseless)
            .jit_if_available(true)
            .build(&limited)
            .map_err(|e| {
                // The library's message begins with an offset that counts the limit put before the pattern.
                let message = e.to_string();
                let reason = message.splitn(3, ": ").last().unwrap_or_default();
                let limit = limited.len() - text.len();
                let rest = e.offset().and_then(|at| text.get(at.checked_sub(limit)?..));
                let at = match rest {
                    None | Some("") => String::new(),
                    Some(rest) => format!(" at \"{rest}\""),
                };
                let text = format!("pcre2_compile() failed: {reason} in \"{text}\"{at}");
                ConfError::word(d, word, text)
            })?;
        let names = inner
            .capture_names()
            .iter()
            .enumerate()
            .filter_map(|(n, name)| {
                name.as_ref()
                    .map(|name| (n, cx.capture_slot(name.as_bytes())))
            })
            .collect();
        Ok(Self {
            groups: inner.captures_len() - 1,
            inner,
            filter: Filter::of(text.as_bytes(), caseless),
            pattern: text,
            names,
        })
    }

    /// Matches `subject`; on success the captures and the named variables are set.
    ///
    /// # Errors
    /// The match limit was reached, and `state` has been informed ([`MatchState::match_failed`]): the computation of a
    /// value need not pass the error on.
    #[inline]
    pub fn exec(&self, state: &mut dyn MatchState, subject: &[u8]) -> Result<bool, MatchLimit> {
        Ok(self.filter.passes(subject) && self.exec_passed(state, subject)?)
    }

    /// Matches a subject that passed the filter.
    fn exec_passed(&self, state: &mut dyn MatchState, subject: &[u8]) -> Result<bool, MatchLimit> {
        let found = self.search(subject, |locations| {
            let spans = (0..=self.groups).map(|n| locations.get(n));
            match self.groups {
                0 => state.captures().clear(),
                _ => state.captures().set(subject, spans),
            }
        });
        let found = found.inspect_err(|limit| self.report(state, subject, *limit))?;
        if found.is_none() {
            return Ok(false);
        }
        for (group, slot) in &self.names {
            let value = state.captures().get(*group).to_vec();
            state.set_slot(*slot, Some(value));
        }
        Ok(true)
    }

    /// The ranges of the groups of the first match, the whole match first; captures and variables are not changed.
    ///
    /// # Errors
    /// The match limit was reached, and `state` has been informed.
    pub fn find(
        &self,
        state: &mut dyn MatchState,
        subject: &[u8],
    ) -> Result<Option<Vec<Option<Range<usize>>>>, MatchLimit> {
        if !self.filter.passes(subject) {
            return Ok(None);
        }
        let found = self.search(subject, |locations| {
            let group = |n| locations.get(n).map(|(start, end)| start..end);
            (0..=self.groups).map(group).collect()
        });
        found.inspect_err(|limit| self.report(state, subject, *limit))
    }

    /// Returns whether `subject` matches; captures are not changed.
    ///
    /// # Errors
    /// The match limit was reached, and `state` has been informed.
    pub fn test(&self, state: &mut dyn MatchState, subject: &[u8]) -> Result<bool, MatchLimit> {
        self.is_match(subject)
            .inspect_err(|limit| self.report(state, subject, *limit))
    }

    /// Whether `subject` matches.
    ///
    /// # Errors
    /// The match limit was reached; no state is informed.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, MatchLimit> {
        Ok(self.filter.passes(subject) && self.search(subject, |_| ())?.is_some())
    }

    /// Calls the library; `take` gets the groups of the match.
    ///
    /// Expressions of a thread share the memory for groups: a call of the allocator costs more than most matches.
    fn search<T>(
        &self,
        subject: &[u8],
        take: impl FnOnce(&CaptureLocations) -> T,
    ) -> Result<Option<T>, MatchLimit> {
        let kept = LOCATIONS.take().filter(|kept| kept.groups >= self.groups);
        let mut kept = kept.unwrap_or_else(|| Locations {
            groups: self.groups,
            memory: self.inner.capture_locations(),
        });
        let found = self.inner.captures_read(&mut kept.memory, subject);
        let taken = found.map(|found| found.map(|_| take(&kept.memory)));
        LOCATIONS.set(Some(kept));
        Ok(taken?)
    }

    #[cold]
    fn report(&self, state: &mut dyn MatchState, subject: &[u8], limit: MatchLimit) {
        let text = limit.display(subject, &self.pattern);
        state.match_failed(format_args!("{text}"));
    }
}

impl ListedRegex {
    /// Makes an entry of a list.
    pub fn new(regex: Regex) -> Self {
        Self {
            filter: regex.filter,
            regex,
        }
    }

    /// Matches like [`Compiled::exec`].
    ///
    /// # Errors
    /// See [`Compiled::exec`].
    #[inline]
    pub fn exec(&self, state: &mut dyn MatchState, subject: &[u8]) -> Result<bool, MatchLimit> {
        Ok(self.filter.passes(subject) && self.regex.exec_passed(state, subject)?)
    }

    /// Matches like [`Compiled::test`].
    ///
    /// # Errors
    /// See [`Compiled::test`].
    #[inline]
    pub fn test(&self, state: &mut dyn MatchState, subject: &[u8]) -> Result<bool, MatchLimit> {
        Ok(self.filter.passes(subject) && self.regex.test(state, subject)?)
    }

    /// Matches like [`Compiled::is_match`].
    ///
    /// # Errors
    /// See [`Compiled::is_match`].
    #[inline]
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, MatchLimit> {
        Ok(self.filter.passes(subject) && self.regex.is_match(subject)?)
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.regex.pattern
    }
}

/// The library's buffer for the groups of a match.
struct Locations {
    /// Number of groups that fit.
    groups: usize,
    memory: CaptureLocations,
}

thread_local! {
    static LOCATIONS: Cell<Option<Locations>> = const { Cell::new(None) };
}

/// Matches a pattern that was created at run time. Returns the groups with their names, the whole match first; `None` if it
/// does not match.
///
/// # Errors The pattern is invalid, or the match limit was reached.
pub fn match_once(pattern: &[u8], subject: &[u8]) -> Result<Option<Vec<Group>>, String> {
    let text = String::from_utf8_lossy(pattern);
    let limited = format!("(*LIMIT_MATCH={MATCH_LIMIT}){text}");
    let regex = pcre2::bytes::Regex::new(&limited).map_err(|error| {
        let message = error.to_string();
        let reason = message.splitn(3, ": ").last().unwrap_or_default();
        format!(
            "pcre2_compile() failed: {reason} in \"{}\"",
            Printable(pattern)
        )
    })?;
    let found = regex.captures(subject);
    let found =
        found.map_err(|error| MatchLimit::from(error).display(subject, &text).to_string())?;
    Ok(found.map(|captures| {
        let name = |n: usize| regex.capture_names().get(n).cloned().flatten();
        let group = |n: usize| Group {
            name: name(n),
            text: captures
                .get(n)
                .map_or(Vec::new(), |m| m.as_bytes().to_vec()),
        };
        (0..regex.captures_len()).map(group).collect()
    }))
}

/// A group of [`match_once`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Option<String>,
    /// The text of the capture; empty if the group did not take part.
    pub text: Vec<u8>,
}

/// Captures of the last match.
#[derive(Debug, Default)]
pub struct Captures {
    subject: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Captures {
    /// Clears all captures and keeps the capacity.
    pub fn clear(&mut self) {
        self.subject.clear();
        self.spans.clear();
    }

    /// Number of groups with the whole match.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether nothing is captured.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The text of group `n`; empty if it did not take part.
    pub fn get(&self, n: usize) -> &[u8] {
        self.spans
            .get(n)
            .map_or(b"", |(start, end)| &self.subject[*start..*end])
    }

    fn set(&mut self, subject: &[u8], spans: impl Iterator<Item = Option<(usize, usize)>>) {
        self.clear();
        self.subject.extend_from_slice(subject);
        self.spans.extend(spans.map(|s| s.unwrap_or((0, 0))));
    }
}

/// Maximum number of internal match calls of one match, so that no pattern holds a thread for long.
pub const MATCH_LIMIT: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_made_while_serving_gives_its_groups() {
        let found = match_once(b"(a+)(?<n>b)?(c)", b"xaac").expect("it is a pattern");
        let texts: Vec<_> = found.iter().flatten().map(|g| g.text.as_slice()).collect();
        assert_eq!(texts, [&b"aac"[..], b"aa", b"", b"c"]);
        assert_eq!(found.expect("it matches")[2].name.as_deref(), Some("n"));
        assert_eq!(match_once(b"a", b"x"), Ok(None));
        assert!(match_once(b"(", b"x").is_err());
        assert!(
            match_once(b"(a+)+$", &[b"a".repeat(60), b"b".to_vec()].concat())
                .is_err_and(|e| e.starts_with("pcre2_match() failed: -47 on \"aaa"))
        );
    }
}
