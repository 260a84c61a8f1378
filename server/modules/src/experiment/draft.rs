//! Parses an `experiment` block.
//!
//! Its lines are data, as those of `map`: their names are directives of other levels, too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use conf::{ConfError, Directive, Word, WordSpan};
use engines::http::{Protocol, Protocols, parse_host, parse_utc};
use server_base::config::VarId;
use server_base::experiment::{Name, VisitMetric};
use server_http::assemble::ConfigBuilder;
use server_http::experiments::{ARMS_MAX, SHARE_ALL, WEIGHT_MAX};
use server_http::value::{Part, Value};

use super::cookie::CookieParams;
use crate::split_clients;

/// A block.
pub(crate) struct Draft {
    /// The directive, for errors.
    pub(super) at: Directive,
    pub(super) name: Name,
    /// The server around it, by its index.
    pub(super) server: Option<usize>,
    pub(super) share: Option<u32>,
    pub(super) user: Option<UserDraft>,
    pub(super) group: Option<GroupDraft>,
    pub(super) start_s: Option<u64>,
    pub(super) end_s: Option<u64>,
    pub(super) pre_period_s: Option<u64>,
    pub(super) window_s: Option<u64>,
    pub(super) kill_switch: Option<PathBuf>,
    pub(super) metrics: Vec<VisitMetric>,
    pub(super) host: Option<Box<[u8]>>,
    pub(super) arms: Vec<ArmDraft>,
}

/// `user`, with its place.
pub(super) struct UserDraft {
    pub(super) source: UserSource,
    pub(super) at: WordSpan,
}

/// The source of a user's identity.
pub(super) enum UserSource {
    Cookie(CookieParams),
    Address,
    Variable(VarId),
}

/// `exclusion_group`.
pub(super) struct GroupDraft {
    pub(super) name: Name,
    /// Start of the experiment's range, hundredths of a percent; `None` for the end of the previous one.
    pub(super) begin: Option<u32>,
    pub(super) at: WordSpan,
}

/// An `arm`.
pub(super) struct ArmDraft {
    pub(super) name: Name,
    pub(super) weight: u32,
    pub(super) host: Option<Box<[u8]>>,
    pub(super) protocols: Option<Protocols>,
    pub(super) at: WordSpan,
}

/// Reads a block.
pub(super) fn read(b: &mut ConfigBuilder, d: &Directive) -> Result<Draft, ConfError> {
    let mut draft = Draft {
        at: d.owned_head(),
        name: name(d, d.word(0), d.arg(0), "experiment")?,
        server: b.server_of(b.location()),
        share: None,
        user: None,
        group: None,
        start_s: None,
        end_s: None,
        pre_period_s: None,
        window_s: None,
        kill_switch: None,
        metrics: Vec::new(),
        host: None,
        arms: Vec::new(),
    };
    conf::each(b, d.items(), |b, line| draft.line(b, line))?;
    draft.check(d)?;
    Ok(draft)
}

impl Draft {
    fn line(&mut self, b: &mut ConfigBuilder, line: &Directive) -> Result<(), ConfError> {
        match line.name() {
            "share" => set(line, &mut self.share, share),
            "user" => {
                conf::once(line, self.user.is_some())?;
                self.user = Some(user(b, line)?);
                Ok(())
            }
            "exclusion_group" => set(line, &mut self.group, group),
            "start" => set(line, &mut self.start_s, time),
            "end" => set(line, &mut self.end_s, time),
            "pre_period" => set(line, &mut self.pre_period_s, duration),
            "window" => set(line, &mut self.window_s, duration),
            "kill_switch" => set(line, &mut self.kill_switch, |line| {
                arguments(line, 1, 1)?;
                Ok(PathBuf::from(OsStr::from_bytes(&b.full_path(line.arg(0)))))
            }),
            "metrics" => {
                conf::once(line, !self.metrics.is_empty())?;
                self.metrics = metrics(line)?;
                Ok(())
            }
            "host" => set(line, &mut self.host, |line| {
                arguments(line, 1, 1)?;
                host(line, line.word(0), line.arg(0))
            }),
            "arm" => self.arm(line),
            unknown => {
                let text = format!("unknown directive \"{unknown}\"");
                Err(ConfError::at(line, text).with_hint(LINES))
            }
        }
    }

    fn arm(&mut self, line: &Directive) -> Result<(), ConfError> {
        let arm = arm(line)?;
        if self.arms.iter().any(|other| other.name == arm.name) {
            let text = format!("duplicate arm \"{}\"", arm.name);
            return Err(ConfError::word(line, line.word(0), text));
        }
        if self.arms.len() >= ARMS_MAX {
            let text = format!("number of arms exceeds {ARMS_MAX}");
            return Err(ConfError::at(line, text));
        }
        self.arms.push(arm);
        Ok(())
    }

    /// Checks a whole block.
    fn check(&self, d: &Directive) -> Result<(), ConfError> {
        let fail = |text: String| Err(ConfError::at_close(d, text));
        let name = self.name;
        if self.arms.len() < ARMS_LEAST {
            return fail(format!(
                "experiment \"{name}\" needs at least {ARMS_LEAST} arms, it has {}",
                self.arms.len()
            ));
        }
        if let (Some(start), Some(end)) = (self.start_s, self.end_s)
            && end <= start
        {
            return fail(format!("experiment \"{name}\" ends before it starts"));
        }
        let with_host = self.arms.iter().filter(|arm| arm.host.is_some()).count();
        if with_host != 0 && with_host != self.arms.len() {
            let text = "all arms of an experiment must have \"host=\", or none";
            return fail(text.to_owned());
        }
        Ok(())
    }
}

/// Sets a value that may be written once.
fn set<T>(
    line: &Directive,
    place: &mut Option<T>,
    parse: impl FnOnce(&Directive) -> Result<T, ConfError>,
) -> Result<(), ConfError> {
    conf::once(line, place.is_some())?;
    *place = Some(parse(line)?);
    Ok(())
}

/// Checks the number of arguments.
fn arguments(line: &Directive, least: usize, most: usize) -> Result<(), ConfError> {
    if (least..=most).contains(&line.args.len()) {
        return Ok(());
    }
    let text = format!(
        "invalid number of arguments in \"{}\" directive",
        line.name()
    );
    Err(ConfError::at(line, text))
}

fn name(line: &Directive, word: &Word, text: &[u8], of: &str) -> Result<Name, ConfError> {
    Name::new(text).ok_or_else(|| {
        let shown = String::from_utf8_lossy(text);
        let text = format!("invalid {of} name \"{shown}\"");
        let hint = "a name has 1 to 32 letters, digits, \"_\" and \"-\"";
        ConfError::word(line, word, text).with_hint(hint)
    })
}

fn share(line: &Directive) -> Result<u32, ConfError> {
    arguments(line, 1, 1)?;
    let share = split_clients::share(line.arg(0)).flatten();
    let share = share.and_then(|share| u32::try_from(share).ok());
    share
        .filter(|share| *share <= SHARE_ALL)
        .ok_or_else(|| ConfError::invalid(line, line.word(0)))
}

fn time(line: &Directive) -> Result<u64, ConfError> {
    arguments(line, 1, 1)?;
    let time = parse_utc(line.arg(0)).and_then(|time| u64::try_from(time).ok());
    time.ok_or_else(|| {
        let hint = "write a time in UTC, for example \"2026-12-01T00:00:00Z\"";
        ConfError::invalid(line, line.word(0)).with_hint(hint)
    })
}

fn duration(line: &Directive) -> Result<u64, ConfError> {
    arguments(line, 1, 1)?;
    let time = conf::parse_time_s(line.arg(0)).filter(|time| *time <= DURATION_MAX_S);
    time.ok_or_else(|| ConfError::invalid(line, line.word(0)))
}

fn group(line: &Directive) -> Result<GroupDraft, ConfError> {
    arguments(line, 1, 2)?;
    let begin = match line.args.get(1) {
        None => None,
        Some(word) => Some(begin(&word.text).ok_or_else(|| ConfError::invalid(line, word))?),
    };
    Ok(GroupDraft {
        name: name(line, line.word(0), line.arg(0), "exclusion group")?,
        begin,
        at: WordSpan::new(line, line.word(0)),
    })
}

/// Parses `at=percent%`; 0 is possible.
fn begin(word: &[u8]) -> Option<u32> {
    let text = word.strip_prefix(b"at=")?;
    if text == b"0%" {
        return Some(0);
    }
    let begin = u32::try_from(split_clients::share(text)??).ok()?;
    (begin < SHARE_ALL).then_some(begin)
}

fn metrics(line: &Directive) -> Result<Vec<VisitMetric>, ConfError> {
    arguments(line, 1, VisitMetric::ALL.len())?;
    let mut metrics = Vec::new();
    for word in &line.args {
        let metric = VisitMetric::from_name(&*word.text).ok_or_else(|| {
            let text = format!("unknown metric \"{}\"", word.as_str());
            let names = VisitMetric::ALL.map(VisitMetric::name).join(", ");
            ConfError::word(line, word, text).with_hint(format!("the metrics are {names}"))
        })?;
        if metrics.contains(&metric) {
            let text = format!("duplicate metric \"{}\"", word.as_str());
            return Err(ConfError::word(line, word, text));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

/// Parses the name of a host, without a port.
fn host(line: &Directive, word: &Word, text: &[u8]) -> Result<Box<[u8]>, ConfError> {
    let mut name = Vec::new();
    match parse_host(text, &mut name) {
        Ok(None) if text.len() <= HOST_BYTES_MAX => Ok(name.into()),
        _ => Err(ConfError::invalid(line, word)),
    }
}

fn user(b: &mut ConfigBuilder, line: &Directive) -> Result<UserDraft, ConfError> {
    arguments(line, 1, 4)?;
    let word = line.word(0);
    let source = match (line.arg(0), line.args.len()) {
        (b"cookie", _) => UserSource::Cookie(cookie(line)?),
        (b"address", 1) => UserSource::Address,
        ([b'$', name @ ..], 1) if is_of_experiment(name) => {
            let text = "\"user\" cannot depend on a variable of an experiment";
            return Err(ConfError::word(line, word, text));
        }
        ([b'$', ..], 1) => match Value::compile(b, line, word)?.parts.as_slice() {
            [Part::Var(id)] => UserSource::Variable(*id),
            _ => return Err(ConfError::invalid(line, word)),
        },
        (b"address" | [b'$', ..], _) => return Err(ConfError::invalid(line, line.word(1))),
        _ => {
            let hint = "\"user\" must be \"cookie\", \"address\" or a variable";
            return Err(ConfError::invalid(line, word).with_hint(hint));
        }
    };
    Ok(UserDraft {
        source,
        at: WordSpan::new(line, word),
    })
}

/// Returns whether a variable is that of an experiment: the user would depend on itself.
fn is_of_experiment(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"{").unwrap_or(name);
    let prefix = name.get(..PREFIX.len());
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

fn cookie(line: &Directive) -> Result<CookieParams, ConfError> {
    let mut params = CookieParams::default();
    let mut known = Vec::new();
    for word in &line.args[1..] {
        let (name, value) = parameter(line, word, &mut known)?;
        let is_valid = match name {
            b"name" => {
                params.name = value.to_vec();
                is_token(value)
            }
            b"domain" => {
                params.domain = Some(value.to_vec());
                is_domain(value)
            }
            b"max_age" => {
                params.max_age_s = conf::parse_time_s(value).unwrap_or(0);
                params.max_age_s > 0
            }
            _ => false,
        };
        if !is_valid {
            return Err(ConfError::invalid(line, word));
        }
    }
    Ok(params)
}

/// Splits `name=value`. A name may come once.
fn parameter<'w>(
    line: &Directive,
    word: &'w Word,
    known: &mut Vec<&'w [u8]>,
) -> Result<(&'w [u8], &'w [u8]), ConfError> {
    let at = memchr::memchr(b'=', &word.text).ok_or_else(|| ConfError::invalid(line, word))?;
    let (name, value) = (&word.text[..at], &word.text[at + 1..]);
    if known.contains(&name) {
        let text = format!("duplicate parameter \"{}\"", word.as_str());
        return Err(ConfError::word(line, word, text));
    }
    known.push(name);
    Ok((name, value))
}

fn arm(line: &Directive) -> Result<ArmDraft, ConfError> {
    arguments(line, 1, 4)?;
    let mut arm = ArmDraft {
        name: name(line, line.word(0), line.arg(0), "arm")?,
        weight: 1,
        host: None,
        protocols: None,
        at: WordSpan::new(line, line.word(0)),
    };
    let mut known = Vec::new();
    for word in &line.args[1..] {
        let (name, value) = parameter(line, word, &mut known)?;
        match name {
            b"weight" => {
                let weight = conf::parse_number(value).and_then(|it| u32::try_from(it).ok());
                let weight = weight.filter(|weight| (1..=WEIGHT_MAX).contains(weight));
                arm.weight = weight.ok_or_else(|| ConfError::invalid(line, word))?;
            }
            b"host" => arm.host = Some(host(line, word, value)?),
            b"protocols" => arm.protocols = Some(protocols(line, word, value)?),
            _ => return Err(ConfError::invalid(line, word)),
        }
    }
    if arm.protocols.is_some() && arm.host.is_none() {
        let text = "\"protocols=\" needs \"host=\"";
        return Err(ConfError::at(line, text));
    }
    Ok(arm)
}

/// Parses names of ALPN with commas between them.
fn protocols(line: &Directive, word: &Word, text: &[u8]) -> Result<Protocols, ConfError> {
    let mut all = Protocols::default();
    for name in text.split(|byte| *byte == b',') {
        let protocol = match name {
            b"http/1.1" => Some(Protocol::Http1),
            name => Protocol::from_alpn(name),
        };
        let protocol = protocol.filter(|protocol| !all.has(*protocol));
        all = all.with(protocol.ok_or_else(|| {
            let known = Protocol::ALL
                .into_iter()
                .fold(Protocols::default(), Protocols::with);
            let names = known
                .alpn()
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>();
            let hint = format!(
                "\"protocols=\" is a comma-separated list of http/1.1, {}",
                names.join(", ")
            );
            ConfError::invalid(line, word).with_hint(hint)
        })?);
    }
    if !all.has(Protocol::Http1) {
        let text = "\"protocols=\" needs \"http/1.1\": clients without ALPN speak it";
        return Err(ConfError::word(line, word, text));
    }
    Ok(all)
}

/// Returns whether a text can be the name of a cookie (RFC 9110 section 5.6.2).
fn is_token(text: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(fits)
}

fn is_domain(text: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    (1..=HOST_BYTES_MAX).contains(&text.len()) && text.iter().all(fits)
}

/// Least number of arms.
const ARMS_LEAST: usize = 2;
/// Longest name of a host, bytes (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 253;
/// Longest window and pre-period, seconds: 400 days.
const DURATION_MAX_S: u64 = 400 * 86_400;
/// The lines of a block, for errors.
const LINES: &str = "directives of an experiment are \"share\", \"user\", \"exclusion_group\", \"start\", \
                     \"end\", \"pre_period\", \"window\", \"kill_switch\", \"metrics\", \"host\" and \"arm\"";

/// The beginning of variables of experiments.
const PREFIX: &[u8] = b"experiment_";
