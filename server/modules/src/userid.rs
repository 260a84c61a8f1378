//! `userid`: a cookie that identifies a client, and variables with its value.
//!
//! An identifier has four numbers: the address or the configured number of the server, the time, a number of the
//! process, and a counter shared by all threads. At most one cookie is set per response.
//!
//! Source: nginx documentation, `ngx_http_userid_module`; the order of bytes is that of mod_uid.

mod cookie;

use std::net::IpAddr;
use std::rc::Rc;

use conf::{Builder, ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::config::ConfigContext;
use server_base::errlog::{Level, Printable};
use server_base::from_args::{self, FromArgs, Text};
use server_base::keyword;
use server_base::listen::ListenAddr;
use server_http::assemble::ConfigBuilder;
use server_http::builtin::find_cookie;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;
use server_http::variables;
use server_http::vars::{self, VarId};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "userid",
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    settings: &[
        <UseridMain as server_http::settings_set::Conf>::def,
        <UseridLoc as server_http::settings_set::Conf>::def,
    ],
    variables: variables! {
        "uid_got": "name of the cookie and the identifier the client sent"
            => |x, _, _, out| show(x, out, Mode::Log, |x, conf| client_uid(x, conf).got);
        "uid_set": "name of the cookie and the identifier the client is given"
            => |x, cx, _, out| show(x, out, Mode::V1, |x, conf| issue(x, cx, conf).set);
    },
    defaults: variables! {
        RESET: "if not empty and not \"0\", the client gets a new identifier; \"log\" also logs it"
            => |_, _, _, _| true;
    },
    header_stage: Some(stage),
    finish: Some(finish),
    on_demand: true,
    ..Module::EMPTY
};

/// The variable that requests a new identifier.
const RESET: &str = "uid_reset";

settings! {
    /// Settings that exist once.
    pub(crate) struct UseridMain: Main / MAIN_PLAIN {}
    extra {
        /// `$uid_reset`.
        reset: Option<VarId>
    }
}

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of a location.
    pub(crate) struct UseridLoc: Location / PLAIN {
        /// Whether cookies are set, in which version, or only read.
        mode "userid": Mode = Mode::Off, "off", HSL;
        /// The number of the server in identifiers; by default its address.
        service "userid_service": Service = Service(None), "address of the server", HSL;
        /// Name of the cookie.
        name "userid_name": Text = Text(b"uid".to_vec()), "uid", HSL;
        /// Domain of the cookie; `none` for none.
        domain "userid_domain": Text = Text(b"none".to_vec()), "none", HSL;
        /// Path of the cookie.
        path "userid_path": Text = Text(b"/".to_vec()), "/", HSL;
        /// Lifetime of the cookie in browsers.
        expires "userid_expires": Expires = Expires::Off, "off", HSL;
        /// Value of the field `P3P` sent with the cookie; `none` for none.
        p3p "userid_p3p": Text = Text(b"none".to_vec()), "none", HSL;
        /// A character of the cookie; a client without it in its cookie gets a new cookie.
        mark "userid_mark": Mark = Mark(None), "off", HSL;
    }
    extra {
        /// `userid_flags`, a mask.
        flags: u32
    }
    merge inherit;
}

fn inherit(own: &mut UseridLoc, parent: Option<&UseridLoc>) {
    if own.flags == 0 {
        own.flags = parent.map_or(0, |parent| parent.flags);
    }
}

keyword! {
    /// `userid`; each mode includes the previous ones.
    #[derive(PartialOrd)]
    pub enum Mode {
        /// Cookies are ignored.
        Off = "off",
        /// They are read.
        Log = "log",
        /// Cookies are set, in version 1.
        V1 = "v1",
        /// Cookies are set, in version 2.
        On = "on",
    }
}

/// `userid_service`.
#[derive(Clone, Copy)]
pub(crate) struct Service(Option<u32>);

impl FromArgs for Service {
    const SYNTAX: &'static str = "number";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        // An identifier has room for 32 bits of it.
        conf::number(d).map(|number| Self(Some(number as u32)))
    }
}

/// `userid_expires`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expires {
    /// With the browser's session.
    Off,
    /// The latest time that old browsers understand.
    Max,
    /// Seconds from now.
    After(u64),
}

impl FromArgs for Expires {
    const SYNTAX: &'static str = "time | max | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"max" => Ok(Self::Max),
            b"off" => Ok(Self::Off),
            text => match conf::parse_time_s(text) {
                Some(0) => Ok(Self::Off),
                Some(seconds) => Ok(Self::After(seconds)),
                None => Err(from_args::invalid(d)),
            },
        }
    }
}

/// `userid_mark`.
#[derive(Clone, Copy)]
pub(crate) struct Mark(Option<u8>);

impl FromArgs for Mark {
    const SYNTAX: &'static str = "letter | digit | = | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"off" => Ok(Self(None)),
            [mark] if mark.is_ascii_alphanumeric() || *mark == b'=' => Ok(Self(Some(*mark))),
            _ => {
                let text = "value must be \"off\" or a single letter, digit or \"=\"";
                Err(ConfError::directive(d, text))
            }
        }
    }
}

/// The bits of `userid_flags`; all values of SameSite share one, so that only the first counts.
const FLAG_OFF: u32 = 1;
const SECURE: u32 = 2;
const HTTP_ONLY: u32 = 4;
const SAME_SITE: u32 = 8;
const STRICT: u32 = 16;
const LAX: u32 = 32;
const NONE: u32 = 64;
const FLAGS: &[(&str, u32)] = &[
    ("off", FLAG_OFF),
    ("secure", SECURE),
    ("httponly", HTTP_ONLY),
    ("samesite=strict", SAME_SITE | STRICT),
    ("samesite=lax", SAME_SITE | LAX),
    ("samesite=none", SAME_SITE | NONE),
];

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Attributes of the cookie.
    directive "userid_flags": HSL, TAKE123, "off", "off | flag ..." => |b, d| {
        let before = b.conf_mut::<UseridLoc>().flags;
        let flags = conf::mask_more(b.loader(), d, FLAGS, before)?;
        b.conf_mut::<UseridLoc>().flags = flags;
        Ok(())
    };
}

fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let (mut sets, mut by_address) = (false, false);
    for conf in b.location_confs_mut::<UseridLoc>() {
        sets |= *conf.mode >= Mode::V1;
        by_address |= *conf.mode == Mode::On && conf.service.0.is_none();
    }
    if sets {
        let reset = b.vars.built_in(RESET);
        b.conf_mut::<UseridMain>().reset = Some(reset);
    }
    if by_address {
        // Makes connections record their local address.
        b.vars.built_in("server_addr");
    }
    Ok(())
}

/// An identifier, in the byte order of the machine.
type Uid = [u32; 4];

/// The identifier of a client.
#[derive(Clone, Default)]
struct ClientUid {
    /// The name of the cookie it was read from.
    name: Vec<u8>,
    /// The cookie the client sent, and the identifier in it.
    cookie: Vec<u8>,
    got: Option<Uid>,
    /// The identifier to set, and whether it replaces another one.
    set: Option<Uid>,
    reset: bool,
    /// The response has the cookie.
    sent: bool,
}

/// The client's identifier; its cookie is read once.
fn client_uid(x: &mut Exchange, conf: &UseridLoc) -> ClientUid {
    match x.extensions.get::<ClientUid>() {
        Some(known) if known.name == conf.name.0 => known.clone(),
        _ => {
            let known = read(x, &conf.name.0);
            x.extensions.set(known.clone());
            known
        }
    }
}

fn read(x: &Exchange, name: &[u8]) -> ClientUid {
    let mut known = ClientUid {
        name: name.to_vec(),
        ..ClientUid::default()
    };
    let mut cookies = x.head.fields_by_id(FieldId::Cookie);
    let found = cookies.find_map(|field| Some((field, find_cookie(field, name)?)));
    let Some((field, cookie)) = found else {
        return known;
    };
    known.cookie = cookie.to_vec();
    let wrong = match cookie.get(..cookie::UID_LEN).map(cookie::decode) {
        None => "too short",
        Some(None) => "invalid",
        Some(Some(uid)) => {
            known.got = Some(uid).filter(|uid| uid[3] != 0);
            return known;
        }
    };
    let field = Printable(field);
    let text = format_args!("client sent {wrong} userid cookie \"{field}\"");
    x.log(Level::Error, text);
    known
}

/// Returns the identifier to set for the client, if any.
fn issue(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &UseridLoc) -> ClientUid {
    let mut known = client_uid(x, conf);
    if known.set.is_some() {
        return known;
    }
    if let Some(got) = known.got {
        let reset = reset_of(x, cx);
        if reset.is_empty() || reset == b"0" {
            if let Some(mark) = conf.mark.0
                && !cookie::is_marked(&known.cookie, mark)
            {
                known.set = Some(got);
                x.extensions.set(known.clone());
            }
            return known;
        }
        known.reset = true;
        if reset == b"log" {
            let uid = cookie::format(&conf.name.0, got);
            let text = format_args!("userid cookie \"{uid}\" was reset");
            x.log(Level::Notice, text);
        }
    }
    let (time, pid) = (cx.clock.unix_s() as u32, cx.env.pid);
    known.set = Some(match *conf.mode {
        Mode::V1 => cookie::version_1(conf.service.0, time, pid),
        _ => {
            let server = match conf.service.0 {
                Some(number) => number.to_be_bytes(),
                None => address(x),
            };
            cookie::version_2(server, time, pid)
        }
    });
    x.extensions.set(known.clone());
    known
}

/// The value of `$uid_reset`.
fn reset_of(x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    if let Some(id) = x.route.http.main::<UseridMain>().reset {
        vars::append(id, x, cx, &mut value);
    }
    value
}

/// The last four bytes of the address that accepted the request, zeros for a UNIX-domain socket.
fn address(x: &Exchange) -> [u8; 4] {
    let ip = match (
        &x.route.http.ports[x.route.port].listen.addr,
        x.client.local,
    ) {
        (ListenAddr::Unix(_), _) => return [0; 4],
        (_, Some(local)) => local.ip(),
        (ListenAddr::Inet(addr), None) => addr.ip(),
    };
    match ip {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(ip) => (ip.to_bits() as u32).to_be_bytes(),
    }
}

/// Appends the value of a variable, if the mode is at least `least`.
fn show(
    x: &mut Exchange,
    out: &mut Vec<u8>,
    least: Mode,
    uid: impl FnOnce(&mut Exchange, &UseridLoc) -> Option<Uid>,
) -> bool {
    let http = Rc::clone(&x.route.http);
    let conf: &UseridLoc = x.loc(&http);
    if *conf.mode < least || *conf.mode == Mode::Off {
        return false;
    }
    let Some(uid) = uid(x, conf) else {
        return false;
    };
    out.extend_from_slice(cookie::format(&conf.name.0, uid).as_bytes());
    true
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    if *x.route.loc::<UseridLoc>().mode < Mode::V1 {
        return Ok(());
    }
    let http = Rc::clone(&x.route.http);
    let conf: &UseridLoc = x.loc(&http);
    let mut known = issue(x, cx, conf);
    let Some(uid) = known.set.filter(|_| !known.sent) else {
        return Ok(());
    };
    // If a later stage fails, the error response keeps the fields of this one.
    known.sent = true;
    let renewed = known.got.is_some() && !known.reset;
    let value = match renewed {
        true => cookie::mark_again(&known.cookie, conf.mark.0),
        false => cookie::encode(uid, conf.mark.0),
    };
    x.extensions.set(known);
    let cookie = cookie::field(conf, &value, cx.clock.unix_s());
    let fields = &mut x.reply.fields;
    fields.push_id(FieldId::SetCookie, b"Set-Cookie", &cookie);
    if !matches!(&*conf.p3p.0, b"none" | b"") {
        fields.push(b"P3P", &conf.p3p.0);
    }
    Ok(())
}
