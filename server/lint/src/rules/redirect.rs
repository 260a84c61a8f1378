//! Which argument of `return` and `rewrite` becomes a `Location`.

use crate::tree::{Id, Tree};

/// The argument that is sent as the new address, if the directive redirects.
pub(crate) fn target(tree: &Tree, id: Id) -> Option<usize> {
    match (tree.name(id), tree.args(id).len()) {
        ("return", 1) => {
            let address = tree.arg(id, 0);
            (!address.bytes().all(|byte| byte.is_ascii_digit())).then_some(0)
        }
        ("return", 2) => {
            let redirects = ["301", "302", "303", "307", "308"].contains(&tree.arg(id, 0));
            redirects.then_some(1)
        }
        ("rewrite", 2..) => {
            let absolute = ["http://", "https://", "$scheme"];
            let address = tree.arg(id, 1);
            let flag = ["redirect", "permanent"].contains(&tree.arg(id, 2));
            (flag || absolute.iter().any(|begin| address.starts_with(begin))).then_some(1)
        }
        _ => None,
    }
}
