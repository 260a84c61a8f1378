//! `sticky`: requests of a client that are passed to the same server.
//!
//! A request brings the identifier of a server (`cookie`, `route`) or of a session (`learn`). [`Binding`] keeps it for one pass.
//! The group's peers find the server ([`server_upstream::binding`]); sessions are in [`server_upstream::sessions`]. With `cookie`
//! each response names its server; with `learn` responses create and renew sessions.
//!
//! Absent: the directive, which `server_modules` has.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `sticky`; nginx's behaviour.

use std::sync::Arc;

use engines::http::FieldId;
use server_base::config::VarId;
use server_base::errlog::Level;
use server_upstream::group::GroupId;
use server_upstream::sessions::{Learned, Sessions};

use crate::cookie_date::cookie_date;
use crate::exchange::{Ctx, Exchange};
use crate::settings_set::{Conf, Scope, SettingsDef};
use crate::value::Value;
use crate::vars;

/// `sticky` of each group that has it.
#[derive(Default)]
pub struct StickyGroups {
    groups: Vec<(GroupId, Arc<Sticky>)>,
    /// Numbers of the zones of `learn`, with the names of their groups.
    zones: Vec<(usize, Vec<u8>)>,
}

impl Conf for StickyGroups {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef =
            SettingsDef::new(Scope::Main, || Arc::new(StickyGroups::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

impl StickyGroups {
    /// Adds the directive of a group, which has no other one.
    pub fn add(&mut self, group: GroupId, sticky: Sticky) {
        self.groups.push((group, Arc::new(sticky)));
    }

    /// Records that a group uses the zone with this number for its sessions. Returns the name of the group that already does.
    pub fn use_zone(&mut self, zone: usize, group: &[u8]) -> Option<Vec<u8>> {
        let other = self.zones.iter().find(|(used, _)| *used == zone);
        let other = other.map(|(_, group)| group.clone());
        if other.is_none() {
            self.zones.push((zone, group.to_vec()));
        }
        other
    }

    /// Returns the directive of a group.
    pub fn of(&self, group: GroupId) -> Option<&Arc<Sticky>> {
        let mut all = self.groups.iter();
        all.find(|(id, _)| *id == group).map(|(_, sticky)| sticky)
    }
}

/// `sticky` of a group.
#[derive(Debug)]
pub struct Sticky {
    /// Variables with the identifier of a request. The first value that is not empty counts.
    pub lookup: Vec<VarId>,
    /// How clients are bound.
    pub method: StickyMethod,
}

/// How clients are bound to servers.
#[derive(Debug)]
pub enum StickyMethod {
    /// A cookie of our own names the server.
    Cookie(Box<StickyCookie>),
    /// A part of the request names the server.
    Route,
    /// Sessions made by servers.
    Learn(Learn),
}

/// The cookie of `sticky cookie`.
#[derive(Debug, Default)]
pub struct StickyCookie {
    /// Its name.
    pub name: Box<[u8]>,
    /// `expires`.
    pub expires: Option<CookieExpires>,
    /// `domain`.
    pub domain: Option<Value>,
    /// `path`.
    pub path: Option<Box<[u8]>>,
    /// `samesite`.
    pub same_site: Option<Value>,
    /// `httponly`.
    pub http_only: bool,
    /// `secure`.
    pub secure: bool,
}

/// `expires` of `sticky cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieExpires {
    /// `max`.
    Max,
    /// Seconds from the response on.
    After(u64),
}

/// The sessions of `sticky learn`.
#[derive(Debug)]
pub struct Learn {
    /// Variables with the identifier of a new session. The first value that is not empty counts.
    pub create: Vec<VarId>,
    /// The sessions.
    pub sessions: Sessions,
    /// `header`: sessions are learned once the response head is complete, else with the end of the response.
    pub after_head: bool,
}

/// Whether a value of `samesite` is one of the three that exist, in any case.
pub fn is_same_site(value: &[u8]) -> bool {
    let known: [&[u8]; 3] = [b"strict", b"lax", b"none"];
    known.iter().any(|known| value.eq_ignore_ascii_case(known))
}

/// The binding of a request to a server, for one pass.
pub(super) struct Binding {
    sticky: Arc<Sticky>,
    /// The identifier in the request; empty for none.
    id: Vec<u8>,
    /// The identifier of the server chosen last.
    server_id: Vec<u8>,
    /// The field `Set-Cookie` with it; empty for none.
    cookie: Vec<u8>,
    /// The response has the cookie.
    is_cookie_set: bool,
}

impl Binding {
    /// Reads the identifier in a request to a group; `None`: the group has no `sticky`.
    pub(super) fn of(x: &mut Exchange, cx: &mut Ctx<'_>, group: GroupId) -> Option<Box<Self>> {
        let groups = x.route.http.main::<StickyGroups>();
        let sticky = Arc::clone(groups.of(group)?);
        Some(Box::new(Self {
            id: first_value(&sticky.lookup, x, cx),
            sticky,
            server_id: Vec::new(),
            cookie: Vec::new(),
            is_cookie_set: false,
        }))
    }

    /// Returns the identifier of the server to which the request is bound. Sessions are searched for each attempt.
    pub(super) fn server(&self, cx: &Ctx<'_>) -> Option<Vec<u8>> {
        if self.id.is_empty() {
            return None;
        }
        match &self.sticky.method {
            StickyMethod::Learn(learn) => learn.sessions.find(&self.id, cx.clock.mono_ms),
            StickyMethod::Cookie(_) | StickyMethod::Route => Some(self.id.clone()),
        }
    }

    /// Records the identifier of the chosen server.
    pub(super) fn choose(&mut self, server_id: &[u8], x: &mut Exchange, cx: &mut Ctx<'_>) {
        self.server_id.clear();
        self.server_id.extend_from_slice(server_id);
        if let StickyMethod::Cookie(cookie) = &self.sticky.method {
            self.cookie = cookie.field(server_id, x, cx);
        }
    }

    /// Learns a session from a response head that is passed on.
    pub(super) fn learn_from_head(&self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if let StickyMethod::Learn(learn) = &self.sticky.method
            && learn.after_head
        {
            self.learn(learn, x, cx);
        }
    }

    /// Learns a session from a response that has ended without a failure.
    pub(super) fn learn_from_end(&self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if let StickyMethod::Learn(learn) = &self.sticky.method
            && !learn.after_head
        {
            self.learn(learn, x, cx);
        }
    }

    /// Adds the cookie to the response, before the fields of the server.
    pub(super) fn set_cookie(&mut self, x: &mut Exchange) {
        if !self.cookie.is_empty() && !std::mem::replace(&mut self.is_cookie_set, true) {
            let fields = &mut x.reply.fields;
            fields.push_id(FieldId::SetCookie, b"Set-Cookie", &self.cookie);
        }
    }

    /// Records that the fields of the response were dropped.
    pub(super) fn drop_cookie(&mut self) {
        self.is_cookie_set = false;
    }

    /// Creates or renews a session.
    fn learn(&self, learn: &Learn, x: &mut Exchange, cx: &mut Ctx<'_>) {
        let created = first_value(&learn.create, x, cx);
        let creates = !created.is_empty();
        let session = if creates { &created } else { &self.id };
        if session.is_empty() {
            return;
        }
        let now_ms = cx.clock.mono_ms;
        match (learn.sessions).learn(session, &self.server_id, creates, now_ms) {
            Learned::Done => {}
            Learned::Evicted => x.log(
                Level::Warn,
                format_args!(
                    "the sticky session zone is full, a least recently used session gave way"
                ),
            ),
            Learned::Full => x.log(
                Level::Alert,
                format_args!("the sticky session zone has no room for a session"),
            ),
        }
    }
}

impl StickyCookie {
    /// Returns the value of `Set-Cookie` for a server.
    fn field(&self, server_id: &[u8], x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        let domain = (self.domain.as_ref()).map(|value| value.to_vec(x, cx));
        let same_site = (self.same_site.as_ref()).map(|value| value.to_vec(x, cx));
        // A constant was checked at the load. As in nginx, any other value is the strictest.
        let same_site = same_site.map(|value| match value.is_empty() || is_same_site(&value) {
            true => value,
            false => b"strict".to_vec(),
        });
        let mut field = [&self.name, &b"="[..], server_id].concat();
        match self.expires {
            None => {}
            Some(CookieExpires::Max) => field.extend_from_slice(EXPIRES_MAX),
            Some(CookieExpires::After(seconds)) => {
                let at = cx.clock.unix_s().saturating_add_unsigned(seconds);
                field.extend_from_slice(b"; expires=");
                field.extend_from_slice(&cookie_date(at));
                field.extend_from_slice(format!("; max-age={seconds}").as_bytes());
            }
        }
        let mut attribute = |name: &[u8], value: &[u8]| {
            field.extend_from_slice(name);
            field.extend_from_slice(value);
        };
        if let Some(domain) = domain.filter(|domain| !domain.is_empty()) {
            attribute(b"; domain=", &domain);
        }
        if self.http_only {
            attribute(b"; httponly", b"");
        }
        if self.secure {
            attribute(b"; secure", b"");
        }
        if let Some(value) = same_site.filter(|value| !value.is_empty()) {
            attribute(b"; samesite=", &value);
        }
        if let Some(path) = &self.path {
            attribute(b"; path=", path);
        }
        field
    }
}

/// Returns the first value that is not empty, or an empty one.
fn first_value(variables: &[VarId], x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    for id in variables {
        if vars::append(*id, x, cx, &mut value) && !value.is_empty() {
            break;
        }
        value.clear();
    }
    value
}

/// Attributes of a cookie with `expires=max`: the latest time that all systems can represent, and ten years.
const EXPIRES_MAX: &[u8] = b"; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000";
