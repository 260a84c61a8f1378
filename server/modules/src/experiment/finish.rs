//! The end of `http`: blocks become experiments, with hosts, parts of groups, cookies and variables.

use std::sync::Arc;

use conf::ConfError;
use server_base::experiment::{ExperimentSettings, VisitMetric};
use server_http::assemble::ConfigBuilder;
use server_http::experiments::{Arm, EXPERIMENTS_MAX, Experiment};

use super::ExperimentMain;
use super::assign::{Assignment, Shown, UserPlan};
use super::cookie::{CookieParams, CookiePlan};
use super::draft::{Draft, UserSource};
use super::group;
use super::hosts::Hosts;
use super::key::{HINT, MasterKey, Purpose};
use super::switch::{self, Look};

/// Completes the experiments.
pub(super) fn run(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let drafts = std::mem::take(&mut b.conf_mut::<ExperimentMain>().drafts);
    if let Some(draft) = drafts.get(EXPERIMENTS_MAX) {
        let text = format!("number of experiments exceeds {EXPERIMENTS_MAX}");
        return Err(ConfError::at(&draft.at, text));
    }
    name_variables(b, &drafts)?;
    let Some(first) = drafts.first() else {
        return Ok(());
    };
    let key = b.conf_mut::<ExperimentMain>().key.take();
    let key = key.ok_or_else(|| {
        let text = "needs an \"experiment_key\" in \"http\"";
        ConfError::directive(&first.at, text).with_hint(HINT)
    })?;
    let parts = group::parts(&drafts)?;
    let mut hosts = Hosts::find(b, &drafts);
    for (index, draft) in drafts.iter().enumerate() {
        let user = user(b, &drafts, index, &key)?;
        let share = match &draft.group {
            Some(group) => key.derive(Purpose::Group, group.name.as_bytes()),
            None => key.derive(Purpose::Share, draft.name.as_bytes()),
        };
        let mut sum = 0;
        let limits = draft.arms.iter().map(|arm| {
            sum += arm.weight;
            sum
        });
        let limits = limits.collect();
        b.conf_mut::<ExperimentMain>().plans.push(Assignment {
            user,
            share: (share, parts[index].clone()),
            arms: (key.derive(Purpose::Arm, draft.name.as_bytes()), limits),
        });
        let experiment = experiment(b, &drafts, index, &mut hosts)?;
        b.experiments.push(experiment);
    }
    hosts.show_times(b);
    b.main.experiments = b.experiments.iter().map(settings).collect();
    look_for_switches(b, &drafts);
    warn_of_no_effect(b, &drafts);
    Ok(())
}

fn experiment(
    b: &mut ConfigBuilder,
    drafts: &[Draft],
    index: usize,
    hosts: &mut Hosts,
) -> Result<Experiment, ConfError> {
    let draft = &drafts[index];
    let mut arms = Vec::with_capacity(draft.arms.len());
    for (at, arm) in draft.arms.iter().enumerate() {
        arms.push(Arm {
            name: arm.name,
            weight: arm.weight,
            host: hosts.of_arm(b, drafts, (index, at))?,
        });
    }
    let metrics = match draft.metrics.as_slice() {
        [] => vec![VisitMetric::Load],
        metrics => metrics.to_vec(),
    };
    let ms = |seconds: u64| seconds.saturating_mul(1000);
    Ok(Experiment {
        name: draft.name,
        arms,
        host: draft.host.clone(),
        server: draft.server,
        share: draft.share(),
        start_ms: draft.start_s.map_or(0, ms),
        end_ms: draft.end_s.map_or(u64::MAX, ms),
        pre_period_s: draft.pre_period_s.unwrap_or(PRE_PERIOD_S),
        window_s: draft.window_s.unwrap_or(WINDOW_S),
        metrics,
        kill_switch: draft.kill_switch.as_deref().map(switch::of_path),
    })
}

/// Returns how users are known. Experiments share cookies of one name.
fn user(
    b: &mut ConfigBuilder,
    drafts: &[Draft],
    index: usize,
    key: &MasterKey,
) -> Result<UserPlan, ConfError> {
    let own = drafts[index].user.as_ref();
    let default = CookieParams::default();
    let params = match own.map(|user| &user.source) {
        Some(UserSource::Address) => {
            return Ok(UserPlan::Address(key.derive(Purpose::Address, b"")));
        }
        Some(UserSource::Variable(id)) => {
            return Ok(UserPlan::Variable(*id, key.derive(Purpose::Variable, b"")));
        }
        Some(UserSource::Cookie(params)) => params,
        None => &default,
    };
    let cookies = &mut b.conf_mut::<ExperimentMain>().cookies;
    let same = cookies.iter().position(|it| it.params.name == params.name);
    if let Some(at) = same {
        if cookies[at].params == *params {
            return Ok(UserPlan::Cookie(at as u16));
        }
        let name = String::from_utf8_lossy(&params.name);
        let text = format!("cookie \"{name}\" has different parameters in another experiment");
        return Err(match own {
            Some(user) => user.at.error(text),
            None => ConfError::at(&drafts[index].at, text),
        });
    }
    cookies.push(CookiePlan {
        params: params.clone(),
        key: key.derive(Purpose::Cookie, &params.name),
    });
    Ok(UserPlan::Cookie((cookies.len() - 1) as u16))
}

/// Defines the variables, and checks those that are used.
fn name_variables(b: &mut ConfigBuilder, drafts: &[Draft]) -> Result<(), ConfError> {
    for (experiment, draft) in (0..).zip(drafts) {
        let name = variable(draft);
        let has_hosts = draft.host.is_some() || draft.arms.iter().any(|arm| arm.host.is_some());
        let names = [
            (name.clone(), false),
            ([&name[..], b"_host"].concat(), true),
        ];
        for (name, is_host) in names.into_iter().filter(|it| !it.1 || has_hosts) {
            let shown = Shown {
                experiment,
                is_host,
            };
            let main = b.conf_mut::<ExperimentMain>();
            let before = main.shown.insert(name.as_slice().into(), shown);
            if let Some(before) = before {
                let text = format!(
                    "conflicting variable \"experiment_{}\", used by experiment \"{}\"",
                    String::from_utf8_lossy(&name),
                    drafts[usize::from(before.experiment)].name
                );
                return Err(ConfError::at(&draft.at, text));
            }
        }
    }
    let main = b.main_conf::<ExperimentMain>();
    for (name, unknown) in b.vars.used_with_prefix("experiment_") {
        match (main.shown.get(name), unknown) {
            (None, Some(unknown)) => return Err(unknown.clone()),
            (Some(shown), Some(unknown)) if shown.is_host => {
                let draft = &drafts[usize::from(shown.experiment)];
                if draft.host.is_none() {
                    let text = format!(
                        ": experiment \"{}\" has no \"host\" for users outside of it",
                        draft.name
                    );
                    return Err(unknown.clone().with_more(&text));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the name of an experiment in variables, which have small letters and no `-`.
fn variable(draft: &Draft) -> Vec<u8> {
    let name = draft.name.as_bytes().iter();
    let byte = |byte: &u8| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_lowercase(),
    };
    name.map(byte).collect()
}

/// Has the worker's main thread look for files of kill switches, each once.
fn look_for_switches(b: &mut ConfigBuilder, drafts: &[Draft]) {
    let mut paths: Vec<_> = (drafts.iter().enumerate())
        .filter_map(|(at, draft)| Some((draft.kill_switch.clone()?, at)))
        .collect();
    paths.sort();
    paths.dedup_by(|a, b| a.0 == b.0);
    for (path, at) in paths {
        if let Some(switch) = &b.experiments[at].kill_switch {
            let look = Look::new(path, Arc::clone(switch));
            b.periodic_tasks.push(Arc::new(look));
        }
    }
}

/// Warns of experiments that change nothing.
fn warn_of_no_effect(b: &mut ConfigBuilder, drafts: &[Draft]) {
    let mut is_used = vec![false; drafts.len()];
    let main = b.main_conf::<ExperimentMain>();
    for (name, _) in b.vars.used_with_prefix("experiment_") {
        if let Some(shown) = main.shown.get(name) {
            is_used[usize::from(shown.experiment)] = true;
        }
    }
    let by_name = b.vars.by_name;
    let now_s = u64::try_from(conf::now_s()).unwrap_or(0);
    for (draft, is_used) in drafts.iter().zip(is_used) {
        let name = draft.name;
        // Pages may name variables while they are served.
        if !is_used && !by_name && draft.arms.iter().all(|arm| arm.host.is_none()) {
            let variable = variable(draft);
            let text = format!(
                "has no effect: no directive uses the variable \"experiment_{}\"",
                String::from_utf8_lossy(&variable)
            );
            b.warn(ConfError::directive(&draft.at, text));
        }
        if draft.end_s.is_some_and(|end_s| end_s <= now_s) {
            let text = format!("has no effect: experiment \"{name}\" has ended");
            b.warn(ConfError::directive(&draft.at, text));
        }
    }
}

/// Time before the begin with views without an arm, by default, seconds: 7 days.
const PRE_PERIOD_S: u64 = 7 * 86_400;
/// Time for which a user is observed by default, seconds: a day.
const WINDOW_S: u64 = 86_400;

/// Returns the settings of an experiment for the store.
fn settings(experiment: &Experiment) -> ExperimentSettings {
    let arms = experiment.arms.iter();
    ExperimentSettings {
        name: experiment.name,
        arms: arms.map(|arm| (arm.name, arm.weight)).collect(),
        share: experiment.share,
        start_s: (experiment.start_ms > 0).then_some(experiment.start_ms / 1000),
        end_s: (experiment.end_ms < u64::MAX).then_some(experiment.end_ms / 1000),
        window_s: experiment.window_s,
        pre_period_s: experiment.pre_period_s,
        metrics: experiment.metrics.clone(),
    }
}
