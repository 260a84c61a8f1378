//! Hosts of arms: the servers with their names, and whether caches can have seen them.

use std::collections::HashMap;

use conf::ConfError;
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::CoreSrv;
use server_http::experiments::ArmHost;
use server_http::names::NameKind;

use super::draft::{ArmDraft, Draft};

/// The servers of the names that experiments have.
pub(super) struct Hosts {
    /// Servers by name, by their indices.
    servers: HashMap<Box<[u8]>, Vec<usize>>,
    /// The arms of servers that were found, as experiment and arm.
    taken: HashMap<usize, (usize, usize)>,
}

impl Hosts {
    /// Finds the servers of all names in experiments.
    pub(super) fn find(b: &ConfigBuilder, drafts: &[Draft]) -> Self {
        let arms = drafts.iter().flat_map(|draft| &draft.arms);
        let hosts = drafts.iter().filter_map(|draft| draft.host.as_ref());
        let names = arms.filter_map(|arm| arm.host.as_ref()).chain(hosts);
        let mut servers: HashMap<_, Vec<usize>> =
            names.map(|name| (name.clone(), Vec::new())).collect();
        // A host may have ten thousand servers.
        let count = if servers.is_empty() { 0 } else { b.servers() };
        for server in 0..count {
            for name in &b.server_conf::<CoreSrv>(server).names {
                let is_exact = matches!(name.kind, NameKind::Exact);
                if let Some(found) = servers.get_mut(name.text.as_slice())
                    && is_exact
                    && found.last() != Some(&server)
                {
                    found.push(server);
                }
            }
        }
        Self {
            servers,
            taken: HashMap::new(),
        }
    }

    /// Returns the host of an arm.
    pub(super) fn of_arm(
        &mut self,
        b: &mut ConfigBuilder,
        drafts: &[Draft],
        (experiment, arm): (usize, usize),
    ) -> Result<Option<ArmHost>, ConfError> {
        let draft: &ArmDraft = &drafts[experiment].arms[arm];
        let Some(name) = &draft.host else {
            return Ok(None);
        };
        let shown = String::from_utf8_lossy(name);
        let fail = |text: String| Err(draft.at.error(text));
        let server = match self.servers.get(name).map(Vec::as_slice) {
            Some([server]) => *server,
            Some(servers) if servers.len() > 1 => {
                return fail(format!(
                    "host \"{shown}\" of arm \"{}\" is the name of {} servers, it must be the name of one",
                    draft.name,
                    servers.len()
                ));
            }
            _ => {
                return fail(format!(
                    "no server has the name of host \"{shown}\" of arm \"{}\"",
                    draft.name
                ));
            }
        };
        if let Some((other, other_arm)) = self.taken.insert(server, (experiment, arm)) {
            let other = &drafts[other];
            return fail(format!(
                "the server of host \"{shown}\" is already used by arm \"{}\" of experiment \"{}\"",
                other.arms[other_arm].name, other.name
            ));
        }
        warn_of_caches(b, drafts, draft, name, server);
        Ok(Some(ArmHost {
            name: name.clone(),
            server,
            protocols: draft.protocols,
        }))
    }

    /// Shows times of files to scripts: on servers of arms, and on that of users outside.
    pub(super) fn show_times(&self, b: &mut ConfigBuilder) {
        for server in self.servers.values().flatten() {
            b.resource_timing.entry(*server).or_default().shows_times = true;
        }
    }
}

/// Warns of a host whose files can be in caches of browsers: arms must start equal.
fn warn_of_caches(
    b: &mut ConfigBuilder,
    drafts: &[Draft],
    arm: &ArmDraft,
    name: &[u8],
    server: usize,
) {
    let shown = String::from_utf8_lossy(name);
    let is_outside = drafts.iter().any(|it| it.host.as_deref() == Some(name));
    let has_others = b.server_conf::<CoreSrv>(server).names.len() > 1;
    let why = match (is_outside, has_others) {
        (true, _) => "it is the host of users outside of the experiment",
        (_, true) => "its server has other names",
        _ => return,
    };
    let text = format!(
        "host \"{shown}\" of arm \"{}\" is not fresh: {why}, and caches may have its files",
        arm.name
    );
    b.warn(arm.at.error(text));
}
