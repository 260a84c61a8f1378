//! `experiment`, `experiment_key`: A/B experiments. A keyed hash assigns users to arms.
//!
//! A request is assigned when a variable of an experiment is read first, or by the beacon. Other requests cost one look at the
//! exchange's extensions. The response sets the cookie, and is private: caches that are shared must not store it.
//! Absent: the beacon, figures of arms, protocols of arm hosts.
//!
//! Source: docs/experiments.md. nginx has no experiments.

mod assign;
mod cookie;
mod draft;
mod finish;
mod group;
mod hosts;
mod key;
mod stage;
mod switch;

use conf::{ConfError, Contexts, Directive};
use server_base::hash::ConfigMap;
use server_http::assemble::ConfigBuilder;
use server_http::module::{Inherit, Module};
use server_http::settings;
use server_http::settings_set::Conf;
use server_http::variables;

pub(crate) use assign::assigned;
use assign::{Assignment, Shown};
use cookie::CookiePlan;
use draft::Draft;
use key::MasterKey;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "experiment",
    directives: &[PLAIN, ROWS],
    settings: &[<ExperimentMain as Conf>::def],
    variables: variables! {
        "experiment_": "arm of the user in the experiment of this name; with the suffix `_host`: the host for \
                        static files"
            => |x, cx, suffix, out| assign::show(x, cx, suffix, out);
    },
    header_stage: Some(stage::run),
    finish: Some(finish::run),
    inherits: &[("experiment", Inherit::Never)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings that exist once.
    pub(crate) struct ExperimentMain: Main / PLAIN {}
    extra {
        /// `experiment_key`.
        key: Option<MasterKey>,
        /// The blocks, until the configuration is complete.
        drafts: Vec<Draft>,
        /// How users are assigned, by experiment.
        plans: Vec<Assignment>,
        /// Variables by the part of their names after `experiment_`.
        shown: ConfigMap<Box<[u8]>, Shown>,
        /// Cookies of users, by name.
        cookies: Vec<CookiePlan>,
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// A file with the key of hashes and cookies; all servers of a fleet have the same file.
    directive "experiment_key": Contexts::HTTP, TAKE1, "", "file" => |b, d| {
        conf::once(d, b.conf_mut::<ExperimentMain>().key.is_some())?;
        let key = key::read(b, d)?;
        b.conf_mut::<ExperimentMain>().key = Some(key);
        Ok(())
    };

    /// An A/B experiment: users, arms with their weights, begin and end.
    block "experiment": Contexts::HTTP_SERVER, TAKE1, "", "name { ... }" => experiment;
}

fn experiment(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let draft = draft::read(b, d)?;
    let drafts = &mut b.conf_mut::<ExperimentMain>().drafts;
    if drafts.iter().any(|other| other.name == draft.name) {
        let text = format!("duplicate experiment \"{}\"", draft.name);
        return Err(ConfError::word(d, d.word(0), text));
    }
    drafts.push(draft);
    Ok(())
}
