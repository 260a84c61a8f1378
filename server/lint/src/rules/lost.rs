//! Settings that a block loses because it has a directive of the same name.

use std::collections::BTreeMap;

use crate::tree::{Id, Tree};

/// The inherited settings that a block loses.
pub(super) struct Loss {
    /// The block.
    pub(super) block: Id,
    /// Its first directive, which stops the inheritance.
    pub(super) at: Id,
    /// The first lost directive.
    pub(super) outer: Id,
    /// The lost names as written.
    pub(super) names: Vec<String>,
}

/// The settings that blocks lose by a directive of their own. The first argument is a name, compared without case.
pub(super) fn losses(tree: &Tree, name: &str) -> Vec<Loss> {
    let mut all = Vec::new();
    let mut before = None;
    for at in tree.http(name) {
        let Some(block) = tree.parent(at) else {
            continue;
        };
        // Only the first directive of a block is reported.
        if before.replace(block) == Some(block) || tree.within(block, name).next() != Some(at) {
            continue;
        }
        let mut around = tree.parents(block);
        let Some(level) = around.find(|level| tree.has(*level, &[name])) else {
            continue;
        };
        let mut lost = names(tree, level, name);
        for kept in names(tree, block, name).keys() {
            lost.remove(kept);
        }
        if let Some(outer) = tree.within(level, name).next().filter(|_| !lost.is_empty()) {
            all.push(Loss {
                block,
                at,
                outer,
                names: lost.into_values().collect(),
            });
        }
    }
    all
}

/// The names of a level, by their lower case.
fn names(tree: &Tree, level: Id, name: &str) -> BTreeMap<String, String> {
    let all = tree.within(level, name).map(|id| tree.arg(id, 0));
    all.map(|name| (name.to_ascii_lowercase(), name.to_owned()))
        .collect()
}
