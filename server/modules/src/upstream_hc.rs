//! `health_check` and `match`: periodic checks of the servers of a group.
//!
//! Here are the directives. Requests and results of checks are in [`server_http::upstream::health`]. Absent:
//! `type=grpc`, since there is no gRPC to servers.
//!
//! Source: nginx documentation, `ngx_http_upstream_hc_module`.

mod response_test;

use std::collections::HashMap;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use server_base::hash::Fnv;
use server_http::assemble::ConfigBuilder;
use server_http::module::{Inherit, Module};
use server_http::settings_set::{Conf, Scope, SettingsDef};
use server_http::upstream::health::{CheckUri, HealthCheck, HealthChecks, ResponseTest};
use server_upstream::group::{GroupId, Groups};
use server_upstream::health::active::{CheckSpec, Initial};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "upstream_hc",
    directives: &[ROWS],
    settings: &[<Drafts as Conf>::def, <HealthChecks as Conf>::def],
    finish: Some(finish),
    inherits: &[("health_check", Inherit::Never)],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Checks the servers of the location's group periodically; a server that fails gets no requests.
    directive "health_check": Contexts::LOCATION, ANY, "",
        "[interval=time] [jitter=time] [fails=number] [passes=number] [uri=uri] [mandatory [persistent]] [match=name] \
         [port=number] [keepalive_time=time]" => health_check;

    /// Names tests of responses to health checks: status, header, body and require.
    block "match": Contexts::HTTP, TAKE1, "", "name { ... }" => response_test::block;
}

/// The directives while the configuration is read.
#[derive(Default)]
struct Drafts {
    checks: Vec<Draft>,
    tests: HashMap<Box<[u8]>, Arc<ResponseTest>>,
}

impl Conf for Drafts {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef = SettingsDef::new(Scope::Main, || Arc::new(Drafts::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

/// One `health_check`.
struct Draft {
    at: Directive,
    location: usize,
    parameters: Parameters,
}

/// The parameters of a `health_check`.
struct Parameters {
    interval_ms: u64,
    jitter_ms: u64,
    fails: u32,
    passes: u32,
    uri: CheckUri,
    initial: Initial,
    test: Option<Word>,
    port: Option<u16>,
    keepalive_time_ms: Option<u64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            interval_ms: INTERVAL_MS,
            jitter_ms: 0,
            fails: 1,
            passes: 1,
            uri: CheckUri {
                written: (*b"/").into(),
                path: (*b"/").into(),
                args: Box::default(),
            },
            initial: Initial::Up,
            test: None,
            port: None,
            keepalive_time_ms: None,
        }
    }
}

fn health_check(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut parameters = Parameters::default();
    for word in &d.args {
        parameters.read(d, word)?;
    }
    let location = b.location();
    b.conf_mut::<Drafts>().checks.push(Draft {
        at: d.owned_head(),
        location,
        parameters,
    });
    Ok(())
}

impl Parameters {
    /// Reads one parameter.
    ///
    /// # Errors
    /// The parameter is unknown, or its value is invalid.
    fn read(&mut self, d: &Directive, word: &Word) -> Result<(), ConfError> {
        let text = word.text.as_slice();
        let at = text.iter().position(|byte| *byte == b'=');
        let (key, value) = match at {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let read = match (key, value) {
            (b"interval", Some(value)) => conf::parse_time_ms(value)
                .filter(|ms| *ms > 0)
                .map(|ms| self.interval_ms = ms),
            (b"jitter", Some(value)) => conf::parse_time_ms(value).map(|ms| self.jitter_ms = ms),
            (b"fails", Some(value)) => positive(value).map(|fails| self.fails = fails),
            (b"passes", Some(value)) => positive(value).map(|passes| self.passes = passes),
            (b"uri", Some(value)) => check_uri(value).map(|uri| self.uri = uri),
            (b"mandatory", None) => {
                self.initial = Initial::Checking;
                Some(())
            }
            (b"persistent", None) => (self.initial == Initial::Checking)
                .then(|| self.initial = Initial::CheckingUnlessUp),
            (b"match", Some(value)) => (!value.is_empty()).then(|| self.test = Some(word.clone())),
            (b"port", Some(value)) => conf::parse_number(value)
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0)
                .map(|port| self.port = Some(port)),
            (b"keepalive_time", Some(value)) => conf::parse_time_ms(value)
                .filter(|ms| *ms > 0)
                .map(|ms| self.keepalive_time_ms = Some(ms)),
            (b"type", Some(b"grpc")) => {
                let text = "\"type=grpc\" is not built yet: gRPC to servers is missing";
                return Err(ConfError::word(d, word, text));
            }
            _ => None,
        };
        read.ok_or_else(|| ConfError::parameter(d, word))
    }
}

/// Parses a number above 0.
fn positive(value: &[u8]) -> Option<u32> {
    let number = conf::parse_number(value)?;
    u32::try_from(number).ok().filter(|number| *number > 0)
}

/// Parses a URI with optional arguments. It is sent as written, so it contains no space and no control character.
fn check_uri(value: &[u8]) -> Option<CheckUri> {
    if value.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return None;
    }
    let mut path = Vec::new();
    let parsed = engines::http::normalize(value, true, &mut path).ok()?;
    let args = parsed.args.map(|args| &value[args]).unwrap_or_default();
    Some(CheckUri {
        written: value.into(),
        path: path.into(),
        args: args.into(),
    })
}

/// Finds the group and the tests of each check.
///
/// # Errors
/// The location passes no requests to a group, the group has no `zone`, or there is no such `match`.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let Drafts { checks, tests } = std::mem::take(b.conf_mut());
    // Checks of one group in locations with one name differ by their count.
    let mut same: HashMap<u64, u64> = HashMap::new();
    for draft in checks {
        let (location, parameters) = (draft.location, draft.parameters);
        let at = b.draft(location);
        let (group, server) = (at.passes_to, at.server.unwrap_or_default());
        let group = group_of(b, &draft.at, group)?;
        let test = match &parameters.test {
            Some(word) => Some(find_test(&tests, &draft.at, word)?),
            None => None,
        };
        let digest = digest(b, group, location);
        let count = same.entry(digest).or_default();
        let spec = CheckSpec {
            id: digest.wrapping_add(*count),
            fails: parameters.fails,
            passes: parameters.passes,
            initial: parameters.initial,
        };
        *count += 1;
        let group_checks = &mut b.conf_mut::<Groups>().get_mut(group).checks;
        *group_checks = group_checks.iter().copied().chain([spec]).collect();
        b.conf_mut::<HealthChecks>().list.push(HealthCheck {
            group,
            server,
            location,
            spec,
            interval_ms: parameters.interval_ms,
            jitter_ms: parameters.jitter_ms,
            uri: parameters.uri,
            port: parameters.port,
            test,
            keepalive_time_ms: parameters.keepalive_time_ms,
        });
    }
    Ok(())
}

/// Returns the group that the location of a check passes requests to.
fn group_of(
    b: &mut ConfigBuilder,
    at: &Directive,
    group: Option<GroupId>,
) -> Result<GroupId, ConfError> {
    let Some(id) = group else {
        let text = "needs a location that passes requests to a group without variables";
        return Err(ConfError::directive(at, text));
    };
    let group = b.conf_mut::<Groups>().get_mut(id);
    if group.zone.is_none() {
        let name = String::from_utf8_lossy(&group.name);
        let text = format!("needs \"zone\" in upstream \"{name}\"");
        return Err(ConfError::directive(at, text));
    }
    Ok(id)
}

fn find_test(
    tests: &HashMap<Box<[u8]>, Arc<ResponseTest>>,
    at: &Directive,
    word: &Word,
) -> Result<Arc<ResponseTest>, ConfError> {
    let name = word.text.strip_prefix(b"match=").unwrap_or_default();
    tests.get(name).cloned().ok_or_else(|| {
        let text = format!("unknown match \"{}\"", String::from_utf8_lossy(name));
        ConfError::word(at, word, text)
    })
}

/// Returns a digest of a check: its group and the name of its location. States of peers outlive a reload with other
/// parameters.
fn digest(b: &mut ConfigBuilder, group: GroupId, location: usize) -> u64 {
    use std::hash::Hasher;
    let mut hash = Fnv::default();
    let mut add = |text: &[u8]| {
        hash.write(text);
        hash.write(&[0]);
    };
    add(&b.conf_mut::<Groups>().get_mut(group).name);
    add(&b.draft(location).name);
    hash.finish()
}

/// Default of `interval`, milliseconds.
const INTERVAL_MS: u64 = 5000;
