//! Exclusion groups: parts of one hash that do not overlap.
//!
//! A user's hash of a group is in the part of one experiment at most. `at=` fixes the begin of a part, so that other experiments
//! can come, grow and go. Parts without it follow in the order of names, not of the configuration.

use std::ops::Range;

use conf::ConfError;
use server_base::experiment::Name;
use server_http::experiments::SHARE_ALL;

use super::draft::{Draft, UserSource};

/// Returns the parts of all experiments, in hundredths of a percent of their hashes.
pub(super) fn parts(drafts: &[Draft]) -> Result<Vec<Range<u32>>, ConfError> {
    let mut parts: Vec<Range<u32>> = drafts.iter().map(|draft| 0..draft.share()).collect();
    let mut members: Vec<(Name, Name, usize)> = (drafts.iter().enumerate())
        .filter_map(|(at, draft)| Some((draft.group.as_ref()?.name, draft.name, at)))
        .collect();
    members.sort_unstable();
    for group in members.chunk_by(|a, b| a.0 == b.0) {
        let group: Vec<usize> = group.iter().map(|(_, _, at)| *at).collect();
        check(drafts, &group)?;
        for (at, part) in place(drafts, &group)? {
            parts[at] = part;
        }
    }
    Ok(parts)
}

impl Draft {
    /// Share of users, hundredths of a percent.
    pub(super) fn share(&self) -> u32 {
        self.share.unwrap_or(SHARE_ALL)
    }

    fn group_error(&self, text: String) -> ConfError {
        match &self.group {
            Some(group) => group.at.error(text),
            None => ConfError::at(&self.at, text),
        }
    }
}

/// Checks that the experiments of a group know users in one way, and that their shares fit.
fn check(drafts: &[Draft], group: &[usize]) -> Result<(), ConfError> {
    let first = &drafts[group[0]];
    for at in &group[1..] {
        let other = &drafts[*at];
        if !is_same_user(first, other) {
            let text = format!(
                "experiments \"{}\" and \"{}\" of one exclusion group must have the same \"user\"",
                first.name, other.name
            );
            return Err(other.group_error(text));
        }
    }
    let mut sum = 0;
    // The error is at the experiment that is one too many in the configuration.
    let mut written = group.to_vec();
    written.sort_unstable();
    for at in written {
        sum += drafts[at].share();
        if sum > SHARE_ALL {
            let name = drafts[at].group.as_ref().map_or(Name::EMPTY, |it| it.name);
            let text = format!("shares of exclusion group \"{name}\" are more than 100%");
            return Err(drafts[at].group_error(text));
        }
    }
    Ok(())
}

fn is_same_user(a: &Draft, b: &Draft) -> bool {
    let source = |draft: &Draft| match draft.user.as_ref().map(|user| &user.source) {
        None => (0, super::cookie::CookieParams::default().name),
        Some(UserSource::Cookie(params)) => (0, params.name.clone()),
        Some(UserSource::Address) => (1, Vec::new()),
        Some(UserSource::Variable(id)) => (2, id.0.to_le_bytes().to_vec()),
    };
    source(a) == source(b)
}

/// Finds places for the experiments of a group, which are sorted by name.
fn place(drafts: &[Draft], group: &[usize]) -> Result<Vec<(usize, Range<u32>)>, ConfError> {
    let begin = |at: usize| drafts[at].group.as_ref().and_then(|group| group.begin);
    let mut placed: Vec<(usize, Range<u32>)> = Vec::new();
    for at in group.iter().copied() {
        let Some(begin) = begin(at) else { continue };
        let part = begin..begin + drafts[at].share();
        if part.end > SHARE_ALL {
            let text = format!("experiment \"{}\" extends beyond 100%", drafts[at].name);
            return Err(drafts[at].group_error(text));
        }
        if let Some((other, _)) = placed.iter().find(|(_, other)| overlap(other, &part)) {
            let (one, other) = (drafts[at].name, drafts[*other].name);
            let text = format!("experiments \"{one}\" and \"{other}\" overlap in their group");
            return Err(drafts[at].group_error(text));
        }
        placed.push((at, part));
    }
    let mut free_from = 0;
    for at in group.iter().copied().filter(|at| begin(*at).is_none()) {
        let share = drafts[at].share();
        // Each round starts after a fixed range, so there are at most as many rounds as ranges.
        while let Some((_, other)) =
            (placed.iter()).find(|(_, other)| overlap(other, &(free_from..free_from + share)))
        {
            free_from = other.end;
        }
        if free_from + share > SHARE_ALL {
            let text = format!(
                "no room for experiment \"{}\" in its group",
                drafts[at].name
            );
            let hint = "set \"at=\" in \"exclusion_group\" to close gaps between experiments";
            return Err(drafts[at].group_error(text).with_hint(hint));
        }
        placed.push((at, free_from..free_from + share));
        free_from += share;
    }
    Ok(placed)
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}
