//! FB604: fewer descriptors than connections.
//!
//! Source: nginx documentation, directives `worker_rlimit_nofile` and `worker_connections`.

use crate::Warn;
use crate::tree::{Id, Tree};

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    let Some(limit) = tree.everywhere("worker_rlimit_nofile").last().copied() else {
        return;
    };
    let connections = tree.everywhere("worker_connections").last().copied();
    let number = |id: Id| tree.arg(id, 0).parse::<u64>().ok();
    let Some(most) = connections.map_or(Some(CONNECTIONS_DEFAULT), number) else {
        return;
    };
    if number(limit).is_some_and(|limit| limit < most) {
        let place = match connections {
            Some(id) => format!("of {}", tree.place(id)),
            None => "by default".to_owned(),
        };
        let message = format!(
            "{} file descriptors are not enough for {most} \"worker_connections\" {place}",
            tree.arg(limit, 0)
        );
        let hint =
            "a proxied request needs two descriptors: set at least twice \"worker_connections\"";
        warn.word(limit, 0, message, hint);
    }
}

/// `worker_connections` without the directive.
const CONNECTIONS_DEFAULT: u64 = 512;

#[cfg(test)]
mod tests {
    use crate::testing::warnings;

    #[test]
    fn a_limit_below_the_connections_is_found() {
        let found = |limit: &str, events: &str| {
            warnings(&format!(
                "worker_rlimit_nofile {limit};\nevents {{ {events} }}"
            ))
        };
        for (limit, events) in [
            ("1023", "worker_connections 1024;"),
            ("511", ""),
            ("0", "worker_connections 1;"),
        ] {
            assert_eq!(found(limit, events), ["FB604 1:22"], "{limit} {events}");
        }
        for (limit, events) in [
            ("1024", "worker_connections 1024;"),
            ("512", ""),
            ("many", "worker_connections 1024;"),
            ("1", "worker_connections ${N};"),
        ] {
            assert_eq!(found(limit, events), [""; 0], "{limit} {events}");
        }
        assert_eq!(warnings("events { worker_connections 99999; }"), [""; 0]);
    }
}
