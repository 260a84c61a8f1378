//! Every directive nginx has: its name, its modules, its contexts.
//!
//! They distinguish a directive that is not built from a misspelt one. The tables are data only.
//!
//! Source: nginx documentation 1.31.5, all `<directive>` elements, and the undocumented names of its command tables.

mod contexts;
mod gateways;
mod http;
mod others;
mod several;

use crate::Contexts;

/// A directive of nginx: its name, its modules separated by ", ", and its contexts.
pub type NginxDirective = (&'static str, &'static str, Contexts);

/// The tables; each is sorted by name, and no name is in two.
const TABLES: [&[NginxDirective]; 4] = [
    http::HTTP,
    gateways::GATEWAYS,
    several::SEVERAL,
    others::OTHERS,
];

/// All directives of nginx, in no order that means anything.
pub fn nginx_directives() -> impl Iterator<Item = &'static NginxDirective> {
    TABLES.into_iter().flatten()
}

/// The directive of nginx with this name.
pub(crate) fn of_nginx(name: &str) -> Option<&'static NginxDirective> {
    TABLES.into_iter().find_map(|table| {
        let index = table
            .binary_search_by_key(&name, |(known, ..)| known)
            .ok()?;
        table.get(index)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_table_is_sorted_and_no_name_is_in_two() {
        for table in TABLES {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        let names: HashSet<_> = nginx_directives().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), nginx_directives().count());
        assert!(names.len() > 700);
        assert!(nginx_directives().all(|known| of_nginx(known.0) == Some(known)));
    }
}
