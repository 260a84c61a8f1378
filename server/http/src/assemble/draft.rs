//! The `http` block while it is read: its servers and locations, not merged yet.

use std::collections::HashSet;
use std::sync::Arc;

use conf::{Directive, Pos};

use super::arena_lists::{ArenaList, ArenaLists};
use super::layers::{LayerId, Layers};
use super::ports::Listens;
use super::protocols::Protocols;
use crate::handler::DynamicCertificates;
use crate::http::ContentHandler;
use crate::location::LocationKind;
use server_upstream::group::GroupId;

use crate::settings_set::{AnyConf, Conf, SettingsSetBuilder, typed_mut};

/// The `http` block while it is read.
pub(super) struct HttpDraft {
    pub(super) main: SettingsSetBuilder,
    pub(super) server_base: SettingsSetBuilder,
    pub(super) location_base: SettingsSetBuilder,
    /// The settings of servers and locations.
    pub(super) written: WrittenSettings,
    pub(super) servers: Vec<ServerDraft>,
    pub(super) locations: Vec<LocationDraft>,
    /// The settings of servers and of locations once they are merged.
    pub(super) server_layers: Layers,
    pub(super) location_layers: Layers,
    pub(super) server: Option<usize>,
    pub(super) location: usize,
    /// The names of locations that are compared with the whole URI or with its beginning, by the level around them.
    pub(super) siblings: HashSet<(usize, bool, Vec<u8>)>,
    pub(super) listens: Listens,
    pub(super) protocols: Protocols,
}

/// The settings that levels inside `http` write, by slot: of most definitions none are.
#[derive(Default)]
pub(super) struct WrittenSettings(ArenaLists<(usize, Option<Arc<dyn AnyConf>>)>);

impl WrittenSettings {
    /// The settings of one definition at a level; created empty at the first use.
    pub(super) fn get_mut<T: Conf>(&mut self, level: &mut ArenaList) -> &mut T {
        let def = T::def();
        let slot = def.slot();
        if !self.0.iter(*level).any(|(known, _)| *known == slot) {
            self.0.push(level, (slot, Some((def.create)())));
        }
        let found = self.0.find_mut(*level, |(known, _)| *known == slot);
        let conf = found.and_then(|(_, conf)| conf.as_mut());
        typed_mut(conf.expect("settings are taken once all are written"))
    }

    /// Takes the settings of a level, by slot.
    pub(super) fn take(
        &mut self,
        level: ArenaList,
    ) -> impl Iterator<Item = (usize, Arc<dyn AnyConf>)> {
        let all = self.0.take(level);
        all.filter_map(|(slot, conf)| Some((slot, conf?)))
    }
}

pub(super) struct ServerDraft {
    /// The settings written in it, of [`HttpDraft::written`].
    pub(super) written: ArenaList,
    /// Its merged settings in [`HttpDraft::server_layers`].
    pub(super) layer: LayerId,
    pub(super) location: usize,
    /// The directive of its block.
    pub(super) at: Directive,
    pub(super) tls: Option<Arc<tls::Config>>,
    pub(super) certificates: Option<Arc<dyn DynamicCertificates>>,
}

/// A location while the configuration is read.
pub struct LocationDraft {
    /// Name or pattern as written.
    pub name: Vec<u8>,
    /// The position of its block.
    pub at: Pos,
    /// The matching rule.
    pub kind: LocationKind,
    /// The settings written in it, of [`HttpDraft::written`].
    pub(super) written: ArenaList,
    /// Its merged settings in [`HttpDraft::location_layers`].
    pub(super) layer: LayerId,
    /// The location around it; `None` for that of `http`.
    pub parent: Option<usize>,
    /// The server it is in.
    pub server: Option<usize>,
    /// Its content handler.
    pub handler: Option<ContentHandler>,
    /// The group that its content handler passes requests to, unless the group is computed for each request.
    pub passes_to: Option<GroupId>,
    /// `limit_except` inside it: excluded methods and their location.
    pub except: Option<(u32, usize)>,
    /// A request for its name without the slash at the end is redirected to its name.
    pub auto_redirect: bool,
    /// Whether it is chosen by URI, not an `if` or `limit_except` block.
    pub mapped: bool,
}
