//! Which resources of two visits belong together.

use std::collections::{HashMap, VecDeque};

use crate::page::comparison::Match;
use crate::report::waterfall::rows::{Drawing, Row};

/// A resource in both visits, or in one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    /// Its row in the first visit.
    pub(super) before: Option<&'a Row<'a>>,
    /// Its row in the second visit.
    pub(super) after: Option<&'a Row<'a>>,
}

/// The resources of the first visit in their order, each with its fellow, then what the second one has alone.
pub(super) fn pairs<'a>(
    before: &'a Drawing<'a>,
    after: &'a Drawing<'a>,
    by: Match,
) -> Vec<Pair<'a>> {
    let key = |drawing: &Drawing<'a>, row: &Row<'a>| -> &'a str {
        let url = row.resource.url.as_str();
        match by {
            Match::Url => url,
            // Hosts of others keep their names: a path alone says little of them.
            Match::Path => url.strip_prefix(drawing.host()).unwrap_or(url),
        }
    };
    let mut waiting: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, row) in after.rows.iter().enumerate() {
        waiting.entry(key(after, row)).or_default().push_back(place);
    }
    let mut is_taken = vec![false; after.rows.len()];
    let mut found: Vec<Pair<'a>> = Vec::with_capacity(before.rows.len());
    for row in &before.rows {
        let same = waiting
            .get_mut(key(before, row))
            .and_then(VecDeque::pop_front);
        if let Some(place) = same {
            is_taken[place] = true;
        }
        found.push(Pair {
            before: Some(row),
            after: same.map(|place| &after.rows[place]),
        });
    }
    let alone = after
        .rows
        .iter()
        .zip(is_taken)
        .filter(|(_, is_taken)| !is_taken);
    found.extend(alone.map(|(row, _)| Pair {
        before: None,
        after: Some(row),
    }));
    found
}
