//! `upstream`: a named group of servers, read and checked.
//!
//! Nothing passes requests to a group yet, so a group only has to be right: its servers, their parameters, its name.
//! Methods of choosing a server, and zones, are refused as directives that are not built.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

use std::collections::HashSet;

use conf::{Arity, ConfError, Contexts, Directive, Row, Word};
use server_base::address::parse_endpoint;
use server_base::listen::MAX_UNIX_PATH;
use server_http::build::Build;
use server_http::confs::{Conf, Scope, Unit};
use server_http::module::Module;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "upstream",
    directives: &[ROWS],
    units: &[<Groups as Conf>::unit],
    ..Module::EMPTY
};

const ROWS: &[Row<Build>] = &[Row {
    name: "upstream",
    contexts: Contexts::HTTP,
    arity: Arity::TAKE1,
    block: true,
    default: "",
    doc: "Defines a group of servers; nothing passes requests to one yet.",
    syntax: "name { server address [parameters]; ... }",
    apply: upstream,
}];

/// The names of the groups.
#[derive(Default)]
struct Groups(HashSet<Vec<u8>>);

impl Conf for Groups {
    fn unit() -> &'static Unit {
        static UNIT: Unit = Unit::new(Scope::Main, || Box::new(Groups::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

fn upstream(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let name = d.arg(0).to_vec();
    let groups = &mut b.conf_mut::<Groups>().0;
    if !groups.insert(name) {
        let text = format!("duplicate upstream \"{}\"", d.arg_str(0));
        return Err(ConfError::word(d, d.word(0), text));
    }
    let mut servers = 0;
    conf::each(b, d.items(), |b, line| {
        if line.name() != "server" {
            return Err(conf::unknown(
                line,
                Contexts::UPSTREAM,
                ["server"].into_iter(),
            ));
        }
        servers += 1;
        server(b, line)
    })?;
    if servers == 0 {
        return Err(ConfError::at_close(d, "no servers are inside upstream"));
    }
    Ok(())
}

/// One `server`.
fn server(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    if d.args.is_empty() {
        let text = "invalid number of arguments in \"server\" directive";
        return Err(ConfError::at(d, text));
    }
    for word in &d.args[1..] {
        parameter(d, word)?;
    }
    let text = d.arg_str(0);
    let wrong = |why: &str| {
        let text = format!("{why} in upstream \"{text}\"");
        Err(ConfError::word(d, d.word(0), text))
    };
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.len() {
            0 => wrong("no path in the unix domain socket"),
            n if n > MAX_UNIX_PATH => wrong("too long path in the unix domain socket"),
            _ => Ok(()),
        };
    }
    match parse_endpoint(text, DEFAULT_PORT, &mut |host| b.look_up(host)) {
        Ok(_) => Ok(()),
        Err(why) => wrong(why),
    }
}

fn parameter(d: &Directive, word: &Word) -> Result<(), ConfError> {
    let text = word.text.as_slice();
    let at = text.iter().position(|byte| *byte == b'=');
    let (key, value) = match at {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let right = match (key, value) {
        (b"weight", Some(value)) => conf::parse_number(value).is_some_and(|n| n > 0),
        (b"max_conns" | b"max_fails", Some(value)) => conf::parse_number(value).is_some(),
        (b"fail_timeout", Some(value)) => conf::parse_time_s(value).is_some(),
        (b"backup" | b"down", None) => true,
        _ => false,
    };
    if right {
        return Ok(());
    }
    let text = format!("invalid parameter \"{}\"", word.as_str());
    Err(ConfError::word(d, word, text))
}

/// Port of a server that names none.
const DEFAULT_PORT: u16 = 80;
