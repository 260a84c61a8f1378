//! The end of `http`: levels are merged parents first and flattened into tables.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use conf::ConfError;
use engines::http::Protocols;
use server_base::errlog::ErrorLog;
use server_base::files::TempDir;
use server_base::listen::Listen;
use server_base::regex::ListedRegex;
use server_base::thread_pool::Aio;

use super::draft::{HttpDraft, LocationDraft, ServerDraft};
use super::module::Module;
use super::{ConfigBuilder, ports, protocols};
use crate::arm_meters::{self, ArmMeter, Arms};
use crate::conf_core::{CoreLoc, Http2Srv, Root};
use crate::experiments::{ArmId, Experiment};
use crate::handler::Handlers;
use crate::http::{Http, Location, Server, ServerTls};
use crate::location::{LocationKind, LocationSet};
use crate::probe;
use crate::resource_timing::ResourceTiming;
use crate::settings_set::SettingsSet;
use crate::status_zones::StatusZone;
use crate::value::Value;
use crate::wants::Wants;

impl ConfigBuilder {
    /// Turns the drafts of `http` into an [`Http`].
    // Long: a line for each part of it.
    pub(super) fn finish_http(&mut self) -> Result<(), ConfError> {
        self.default_root();
        self.merge();
        for finish in self.modules.iter().filter_map(|m| m.finish) {
            finish(self)?;
        }
        // Connections do not measure or look up values that no variable uses.
        let needs_local = self.vars.is_used("server_addr");
        if let Some(error) = self.zones.undeclared() {
            return Err(error);
        }
        let wants = self.wants();
        let vars = self.vars.finish()?;
        let draft = self.http.take().expect("http is open until here");
        protocols::check_certificates(draft.listens.all(), &draft.servers)?;
        protocols::check_arm_hosts(draft.listens.all(), &draft.servers, &self.experiments)?;
        if self.reads_bodies {
            self.name_body_dirs(&draft);
        }
        self.caches.add_directories(&mut self.main.temp_paths)?;
        self.periodic_tasks.extend(self.caches.tasks());
        let (main, listens) = (draft.main.finish(), draft.listens);
        // Indices are kept: modules have stored locations by their number while directives were read.
        let parents: Vec<Option<usize>> = draft.locations.iter().map(|l| l.parent).collect();
        let (mut servers, mut tls) = servers(draft.servers, &draft.server_layers.finish());
        set_arms(&mut servers, &mut tls, &self.experiments);
        for (server, timing) in &self.resource_timing {
            servers[*server].timing = *timing;
        }
        let (ports, warnings) = ports::ports(listens.all(), &servers, needs_local)?;
        for text in warnings {
            self.warn(ConfError::new(text));
        }
        let listens: Vec<Listen> = ports.iter().map(|p| p.listen.clone()).collect();
        if !self.makes_http {
            self.finished = Some((None, listens));
            return Ok(());
        }
        let location_confs = draft.location_layers.finish();
        let locations = flatten(draft.locations, &location_confs, &parents, &mut servers);
        let default_log = ErrorLog::new(Vec::new());
        let modules = self.active_modules();
        let emits = (wants.share > 0).then_some(("probe", probe::HANDLERS));
        let of_modules = modules.iter().map(|m| (m.name, m.handlers));
        let module_handlers: Vec<_> = emits.into_iter().chain(of_modules).collect();
        let http = Http {
            main,
            servers,
            tls,
            with_own_log: share_log(&locations, &default_log),
            default_log,
            locations,
            ports,
            vars,
            handlers: Handlers::of(&module_handlers),
            module_handlers,
            header_stages: modules.iter().filter_map(|m| m.header_stage).collect(),
            subrequest_stages: {
                let of_all = modules.iter().filter(|m| m.stage_of_subrequests);
                of_all.filter_map(|m| m.header_stage).collect()
            },
            prefix: self.options.prefix.clone(),
            logs: OnceLock::new(),
            key_logs: std::mem::take(&mut self.key_logs),
            wants,
            caches: self.caches.all(),
            periodic_tasks: std::mem::take(&mut self.periodic_tasks),
            background_fetches: std::mem::take(&mut self.background_fetches),
            arms: arms(&self.experiments),
            experiments: std::mem::take(&mut self.experiments),
            status_zones: by_server(std::mem::take(&mut self.status_zones)),
        };
        self.finished = Some((Some(Arc::new(http)), listens));
        Ok(())
    }

    /// Without `root` at `http` level it is `html` below the prefix.
    fn default_root(&mut self) {
        let path = Value::text(&self.full_path(b"html"));
        let temp = TempDir {
            path: self.full_path(BODY_TEMP.as_bytes()),
            levels: [0; 3],
        };
        let pool = self.main.thread_pools.default_pool();
        let loc: &mut CoreLoc = self
            .http
            .as_mut()
            .expect("http is open until it is finished")
            .location_base
            .get_mut();
        loc.root.get_or_insert(Root { path, alias: None });
        loc.bodies.body_temp_path.get_or_insert(temp);
        loc.files.aio.get_or_insert(Aio::Threads(pool));
    }

    /// Notes the directories for request bodies, which are made before the worker starts.
    fn name_body_dirs(&mut self, draft: &HttpDraft) {
        use std::os::unix::ffi::OsStrExt;
        for location in &draft.locations {
            let core: &CoreLoc = draft.location_layers.get(location.layer);
            let dir = core.bodies.body_temp_dir();
            let path = Path::new(std::ffi::OsStr::from_bytes(&dir.path));
            if !self.main.temp_paths.contains(path) {
                self.main.temp_paths.insert(path.to_path_buf());
            }
        }
    }

    /// The modules with active handlers and stages under this configuration.
    fn active_modules(&self) -> Vec<&'static Module> {
        let modules = self.modules.iter().copied();
        let is_active = |m: &&Module| !m.on_demand || self.is_written(m);
        modules.filter(is_active).collect()
    }

    /// Whether a directive of a module is written.
    fn is_written(&self, module: &Module) -> bool {
        let mut rows = module.directives.iter().copied().flatten();
        rows.any(|row| self.named.contains(row.name))
    }

    /// The events that modules want under this configuration.
    fn wants(&mut self) -> Wants {
        let mut all = Wants::default();
        for module in self.modules {
            let is_used = module.variables.iter().any(|v| self.vars.is_used(v.name));
            if let Some(wants) = module.wants
                && (is_used || self.is_written(module))
            {
                all.add(wants(self, is_used));
            }
        }
        if !self.experiments.is_empty() {
            all.add(Wants::arms(self.main.lab_store.is_some()));
        }
        all
    }

    /// Merges every level with the one around it.
    fn merge(&mut self) {
        let http = self
            .http
            .as_mut()
            .expect("http is open until it is finished");
        http.main.merge();
        let base = std::mem::take(&mut http.server_base);
        let base = http.server_layers.outermost(base);
        for server in &mut http.servers {
            let written = http.written.take(server.written);
            server.layer = http.server_layers.inside(base, written);
        }
        http.location_layers.reserve(http.locations.len());
        let base = std::mem::take(&mut http.location_base);
        http.locations[0].layer = http.location_layers.outermost(base);
        // Parents come before their children in the list.
        for i in 1..http.locations.len() {
            let parent = http.locations[i].parent.expect("all are inside the first");
            let around = http.locations[parent].layer;
            let written = http.written.take(http.locations[i].written);
            http.locations[i].layer = http.location_layers.inside(around, written);
        }
    }
}

/// Returns the zones by the index of their server; empty if there are none.
fn by_server(zones: HashMap<usize, Arc<StatusZone>>) -> Vec<Option<Arc<StatusZone>>> {
    let last = zones.keys().max();
    let mut all = vec![None; last.map_or(0, |last| last + 1)];
    for (server, zone) in zones {
        all[server] = Some(zone);
    }
    all
}

fn servers(drafts: Vec<ServerDraft>, confs: &[SettingsSet]) -> (Vec<Server>, Vec<ServerTls>) {
    let server = |draft: ServerDraft| {
        let confs = draft.layer.of(confs);
        let tls = ServerTls {
            config: draft.tls.map(Arc::unwrap_or_clone),
            http2: *confs.get::<Http2Srv>().on,
            own: Protocols::default(),
        };
        let server = Server {
            confs,
            location: draft.location,
            named: HashMap::new(),
            certificates: draft.certificates,
            arm: None,
            timing: ResourceTiming::default(),
        };
        (server, tls)
    };
    drafts.into_iter().map(server).unzip()
}

/// Notes the arms of the servers that have names of their hosts, and the protocols of these arms.
fn set_arms(servers: &mut [Server], tls: &mut [ServerTls], experiments: &[Experiment]) {
    for (experiment, it) in (0..).zip(experiments) {
        for (arm, it) in (0..).zip(&it.arms) {
            if let Some(host) = &it.host {
                servers[host.server].arm = Some(ArmId { experiment, arm });
                tls[host.server].offer_only(host.protocols.unwrap_or_default());
            }
        }
    }
}

/// The arms of experiments, and their meters.
fn arms(experiments: &[Experiment]) -> Arms {
    arm_meters::prune();
    let all = || experiments.iter().flat_map(|experiment| &experiment.arms);
    let meters = |experiment: &Experiment| {
        let arms = experiment.arms.iter();
        arms.map(|arm| ArmMeter::of(experiment.name, arm.name))
            .collect()
    };
    Arms {
        meters: experiments.iter().map(meters).collect(),
        any_host: all().any(|arm| arm.host.is_some()),
        any_without_host: all().any(|arm| arm.host.is_none()),
    }
}

/// Sets the error log of all locations that have none of their own; returns the others.
fn share_log(locations: &[Location], default: &ErrorLog) -> Vec<usize> {
    let has_own = |at: &usize| !locations[*at].core.share_log(default);
    (0..locations.len()).filter(has_own).collect()
}

fn flatten(
    drafts: Vec<LocationDraft>,
    all_confs: &[SettingsSet],
    parents: &[Option<usize>],
    servers: &mut [Server],
) -> Vec<Location> {
    let sets = inner_sets(&drafts);
    for (id, draft) in drafts.iter().enumerate() {
        // Of several with one name the first counts, as in nginx.
        if let (LocationKind::Named, Some(server)) = (&draft.kind, draft.server) {
            let named = &mut servers[server].named;
            named.entry(draft.name.clone()).or_insert(id);
        }
    }
    let mapped: Vec<bool> = drafts.iter().map(|d| d.mapped).collect();
    let handlers: Vec<_> = drafts.iter().map(|d| d.handler).collect();
    drafts
        .into_iter()
        .zip(sets)
        .enumerate()
        .map(|(id, (draft, set))| {
            let around = (draft.kind_is_if()).then_some(parents[id]).flatten();
            let confs = draft.layer.of(all_confs);
            Location {
                name: draft.name,
                at: draft.at,
                parent: parents[id],
                kind: draft.kind,
                core: confs.shared(),
                confs,
                inner: set,
                handler: draft.handler.or_else(|| around.and_then(|p| handlers[p])),
                mapped: mapped_of(id, parents, &mapped),
                except: draft.except,
            }
        })
        .collect()
}

/// The locations inside each level.
fn inner_sets(drafts: &[LocationDraft]) -> Vec<LocationSet> {
    let inside = drafts.iter().enumerate();
    let mut by_parent: Vec<(usize, usize)> = inside
        .filter_map(|(id, draft)| Some((draft.parent?, id)))
        .collect();
    by_parent.sort_unstable();
    let mut rest = by_parent.as_slice();
    let sets = (0..drafts.len()).map(|level| {
        let (own, others) = rest.split_at(rest.partition_point(|(parent, _)| *parent == level));
        rest = others;
        inner_set(own.iter().map(|(_, id)| *id), drafts)
    });
    sets.collect()
}

/// A set of locations: those compared with the whole URI, with its beginning, by expression; and those of the first two to
/// which requests without their last slash are redirected.
fn inner_set(ids: impl Iterator<Item = usize> + Clone, drafts: &[LocationDraft]) -> LocationSet {
    let named = |is: fn(&LocationDraft) -> bool| {
        let ids = ids.clone().filter(move |id| is(&drafts[*id]));
        ids.map(|id| (drafts[id].name.clone(), id)).collect()
    };
    let regex = ids.clone().filter_map(|id| match &drafts[id].kind {
        LocationKind::Regex(regex) => Some((ListedRegex::new(regex.clone()), id)),
        _ => None,
    });
    let slashes = named(|draft| draft.auto_redirect && (draft.is_exact() || draft.is_prefix()));
    LocationSet::new(
        named(LocationDraft::is_exact),
        named(LocationDraft::is_prefix),
        regex.collect(),
    )
    .with_slashes(slashes)
}

/// The nearest level at or around `id` that is chosen by URI.
fn mapped_of(mut id: usize, parents: &[Option<usize>], mapped: &[bool]) -> usize {
    while !mapped[id] {
        match parents[id] {
            Some(parent) => id = parent,
            None => break,
        }
    }
    id
}

impl LocationDraft {
    /// Whether its name is compared with the whole URI.
    fn is_exact(&self) -> bool {
        matches!(self.kind, LocationKind::Exact)
    }

    /// Whether its name is compared with the beginning of the URI.
    fn is_prefix(&self) -> bool {
        matches!(self.kind, LocationKind::Prefix | LocationKind::PrefixOnly)
    }

    /// Whether it is an `if` or `limit_except` block, which keeps the handler of the location around it.
    fn kind_is_if(&self) -> bool {
        !self.mapped
    }
}

/// Directory of request bodies without `client_body_temp_path`, relative to the prefix; a build can set it.
const BODY_TEMP: &str = match option_env!("FIRSTBYTE_BODY_TEMP_PATH") {
    Some(path) => path,
    None => "client_body_temp",
};

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;
