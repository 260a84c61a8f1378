//! The blocks of HTTP: `http`, `server`, `location`, `limit_except`, and levels for `if`.
//!
//! Source: nginx documentation, `ngx_http_core_module`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use conf::{ConfError, Contexts, Directive};
use engines::http::Method;
use server_base::regex::Regex;

use super::arena_lists::ArenaList;
use super::draft::{HttpDraft, LocationDraft, ServerDraft, WrittenSettings};
use super::layers::{LayerId, Layers};
use super::ports::{ListenDraft, Listens};
use super::{ConfigBuilder, protocols};
use crate::conf_core::{CoreLoc, CoreSrv};
use crate::http::ContentHandler;
use crate::location::{LocationKind, method_bit};
use crate::settings_set::{Scope, SettingsSetBuilder};

conf::directives! {
    /// The block directives.
    pub(super) const ROWS: ConfigBuilder;

    /// The context of HTTP server directives.
    block "http": Contexts::MAIN, NOARGS, "", "{ ... }" => http;

    /// A virtual server.
    block "server": Contexts::HTTP, NOARGS, "", "{ ... }" => server;

    /// Settings for a part of the URI space.
    block "location": Contexts::SERVER.or(Contexts::LOCATION), TAKE12, "",
        "[ = | ~ | ~* | ^~ ] uri { ... } | @name { ... }" => location;

    /// Settings for all methods but the named ones.
    block "limit_except": Contexts::LOCATION, ONE_MORE, "", "method ... { ... }" => limit_except;
}

pub(super) fn http(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.http.is_some() || b.finished.is_some())?;
    let root = LocationDraft {
        name: Vec::new(),
        at: d.pos,
        kind: LocationKind::Block,
        written: ArenaList::default(),
        layer: LayerId::default(),
        parent: None,
        server: None,
        handler: None,
        passes_to: None,
        except: None,
        auto_redirect: false,
        mapped: true,
    };
    let [servers, listens, locations] = LAST_NUMBERS.each_ref().map(|n| n.load(Ordering::Relaxed));
    let mut locations = Vec::with_capacity(locations.max(1));
    locations.push(root);
    b.http = Some(HttpDraft {
        main: SettingsSetBuilder::of_all(&b.defs, Scope::Main),
        server_base: SettingsSetBuilder::of_all(&b.defs, Scope::Server),
        location_base: SettingsSetBuilder::of_all(&b.defs, Scope::Location),
        written: WrittenSettings::default(),
        server_layers: Layers::default(),
        location_layers: Layers::default(),
        servers: Vec::with_capacity(servers),
        locations,
        server: None,
        location: 0,
        siblings: HashSet::new(),
        listens: Listens::with_capacity(listens),
        protocols: protocols::Protocols::default(),
    });
    conf::walk_block(b, d, Contexts::HTTP)?;
    let http = b.http.as_ref().expect("http is open until it is finished");
    let numbers = [
        http.servers.len(),
        http.listens.all().len(),
        http.locations.len(),
    ];
    for (last, number) in LAST_NUMBERS.iter().zip(numbers) {
        last.store(number, Ordering::Relaxed);
    }
    b.finish_http()
}

fn server(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let location = b.open_location(Vec::new(), LocationKind::Block, true);
    let http = b.http.as_mut().expect("server lies inside http");
    http.servers.push(ServerDraft {
        written: ArenaList::default(),
        layer: LayerId::default(),
        location,
        at: protocols::head(d),
        tls: None,
        certificates: None,
    });
    let index = http.servers.len() - 1;
    http.server = Some(index);
    http.locations[location].server = Some(index);
    conf::walk(b, d.items(), Contexts::SERVER)?;
    b.default_listen(index);
    b.default_name();
    let http = b.http.as_mut().expect("server lies inside http");
    http.server = None;
    http.location = 0;
    // Nothing is added to a server that has ended: those of ten thousand would only make the table slow.
    http.siblings.clear();
    Ok(())
}

fn location(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let (modifier, name) = location_name(d)?;
    let kind = match modifier {
        b"=" => LocationKind::Exact,
        b"^~" => LocationKind::PrefixOnly,
        b"~" | b"~*" => {
            let regex = Regex::compile(b, d, d.word(d.args.len() - 1), name, modifier == b"~*")?;
            LocationKind::Regex(regex)
        }
        b"@" => LocationKind::Named,
        _ => LocationKind::Prefix,
    };
    b.check_nesting(d, &kind, name)?;
    let outer = b.location();
    let id = b.open_location(name.to_vec(), kind, true);
    conf::walk(b, d.items(), Contexts::LOCATION)?;
    b.set_location(outer);
    debug_assert!(id > outer);
    Ok(())
}

/// Modifier and name. nginx also allows them in one word (`=/x`, `~*x`, `@x`).
fn location_name(d: &Directive) -> Result<(&[u8], &[u8]), ConfError> {
    if d.args.len() == 2 {
        return match d.arg(0) {
            m @ (b"=" | b"^~" | b"~" | b"~*") => Ok((m, d.arg(1))),
            _ => Err(ConfError::word(
                d,
                d.word(0),
                format!("invalid location modifier \"{}\"", d.arg_str(0)),
            )),
        };
    }
    let name = d.arg(0);
    for modifier in [&b"="[..], b"^~", b"~*", b"~"] {
        if let Some(rest) = name.strip_prefix(modifier) {
            return Ok((modifier, rest));
        }
    }
    if name.starts_with(b"@") {
        return Ok((b"@", name));
    }
    Ok((b"", name))
}

fn limit_except(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut allowed = 0u32;
    for word in &d.args {
        match Method::parse(&word.text.to_ascii_uppercase()) {
            Method::Other | Method::Trace | Method::Connect => {
                let text = format!("invalid method \"{}\"", word.as_str());
                return Err(ConfError::word(d, word, text));
            }
            method => allowed |= method_bit(method),
        }
    }
    if allowed & method_bit(Method::Get) != 0 {
        allowed |= method_bit(Method::Head);
    }
    let outer = b.location();
    conf::once(d, b.draft(outer).except.is_some())?;
    let id = b.open_location(Vec::new(), LocationKind::Block, false);
    conf::walk(b, d.items(), Contexts::LIMIT_EXCEPT)?;
    b.set_location(outer);
    b.draft(outer).except = Some((!allowed, id));
    Ok(())
}

impl ConfigBuilder {
    /// Opens a level at location scope inside the current one and makes it current.
    pub fn open_location(&mut self, name: Vec<u8>, kind: LocationKind, mapped: bool) -> usize {
        let http = self.http.as_mut().expect("locations lie inside http");
        let parent = Some(http.location);
        let server = http.server;
        http.locations.push(LocationDraft {
            name,
            at: self.applying,
            kind,
            written: ArenaList::default(),
            layer: LayerId::default(),
            parent,
            server,
            handler: None,
            passes_to: None,
            except: None,
            auto_redirect: false,
            mapped,
        });
        http.location = http.locations.len() - 1;
        http.location
    }

    /// The current level at location scope.
    pub fn location(&self) -> usize {
        self.http
            .as_ref()
            .expect("locations lie inside http")
            .location
    }

    /// Makes a level current again.
    pub fn set_location(&mut self, location: usize) {
        self.http
            .as_mut()
            .expect("locations lie inside http")
            .location = location;
    }

    /// A level's draft.
    pub fn draft(&mut self, location: usize) -> &mut LocationDraft {
        &mut self
            .http
            .as_mut()
            .expect("locations lie inside http")
            .locations[location]
    }

    /// The server of a location; `None` outside servers.
    pub fn server_of(&self, location: usize) -> Option<usize> {
        let http = self.http.as_ref().expect("locations lie inside http");
        http.locations[location].server
    }

    /// Returns whether all connections to a server are by TLS.
    pub fn listens_by_tls_only(&self, server: usize) -> bool {
        let http = self.http.as_ref().expect("servers lie inside http");
        let mut own = http.listens.all().iter().filter(|it| it.server == server);
        own.all(|listen| listen.ssl)
    }

    /// Installs a content handler in the current location.
    pub fn set_handler(&mut self, handler: ContentHandler) {
        let location = self.location();
        self.draft(location).handler = Some(handler);
    }

    /// Whether the current level is the server's own, outside any location.
    pub fn in_server(&self) -> bool {
        let http = self.http.as_ref().expect("servers lie inside http");
        http.server
            .is_some_and(|s| http.servers[s].location == http.location)
    }

    /// nginx's rules for a location inside a location.
    fn check_nesting(
        &mut self,
        d: &Directive,
        kind: &LocationKind,
        name: &[u8],
    ) -> Result<(), ConfError> {
        let shown = String::from_utf8_lossy(name);
        let outer = self.location();
        let outer_draft = self.draft(outer);
        let outer_name = String::from_utf8_lossy(&outer_draft.name);
        let top = matches!(outer_draft.kind, LocationKind::Block);
        if !top {
            let fault = match (&outer_draft.kind, kind) {
                (LocationKind::Exact, _) => Some(format!(
                    "location \"{shown}\" cannot be inside the exact location \"{outer_name}\""
                )),
                (LocationKind::Named, _) => Some(format!(
                    "location \"{shown}\" cannot be inside the named location \"{outer_name}\""
                )),
                (_, LocationKind::Named) => Some(format!(
                    "named location \"{shown}\" can be on the server level only"
                )),
                (LocationKind::Prefix | LocationKind::PrefixOnly | LocationKind::Regex(_), k)
                    if !matches!(k, LocationKind::Regex(_))
                        && !name.starts_with(outer_draft.name.as_slice()) =>
                {
                    Some(format!(
                        "location \"{shown}\" is outside location \"{outer_name}\""
                    ))
                }
                _ => None,
            };
            if let Some(text) = fault {
                return Err(ConfError::at(d, text));
            }
        }
        if !self.is_first(outer, kind, name) {
            return Err(ConfError::at(d, format!("duplicate location \"{shown}\"")));
        }
        Ok(())
    }

    /// Whether a location is the first of its name inside the one around it.
    fn is_first(&mut self, outer: usize, kind: &LocationKind, name: &[u8]) -> bool {
        let exact = match kind {
            LocationKind::Exact => true,
            LocationKind::Prefix | LocationKind::PrefixOnly => false,
            // Of named locations the first counts; expressions may repeat.
            LocationKind::Regex(_) | LocationKind::Named | LocationKind::Block => return true,
        };
        let http = self.http.as_mut().expect("locations lie inside http");
        http.siblings.insert((outer, exact, name.to_vec()))
    }

    /// A server without `listen` listens on port 80, or on 8000 without the right to use port 80.
    fn default_listen(&mut self, server: usize) {
        let http = self.http.as_mut().expect("servers lie inside http");
        // The listens of a server follow each other, and this server is the last so far.
        if http.listens.all().last().is_none_or(|l| l.server != server) {
            http.listens.push(ListenDraft::default_for(server));
        }
    }

    /// A server without `server_name` has the empty name.
    fn default_name(&mut self) {
        let srv = self.conf_mut::<CoreSrv>();
        if srv.names.is_empty() {
            srv.names.push(crate::names::ServerName::empty());
        }
    }

    /// The settings of the core of the current location.
    pub fn core_loc(&mut self) -> &mut CoreLoc {
        self.conf_mut()
    }
}

/// Numbers of servers, listens and locations in the last configuration of this process. The lists are allocated
/// with that capacity, since a list that grows to ten thousand entries is copied again and again.
static LAST_NUMBERS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
