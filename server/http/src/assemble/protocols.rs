//! Which protocols the addresses of `listen` speak: that servers agree on them, and that those with TLS have
//! certificates.
//!
//! Source: nginx documentation, directive `listen`, parameters `ssl`, `proxy_protocol` and those of protocols.

use std::collections::HashMap;

use conf::{ConfError, Directive};
use server_base::listen::ListenAddr;

use super::draft::ServerDraft;
use super::ports::{ListenDraft, by_address};
use crate::experiments::Experiment;

/// The protocols of each address, as declared by the servers read so far.
#[derive(Default)]
pub(super) struct Protocols(HashMap<ListenAddr, AddrProtocols>);

/// The protocols that the servers of one address declare.
struct AddrProtocols {
    /// Whatever any of them said, a bit each.
    all: u16,
    /// One of them gave socket options.
    with_options: bool,
    /// The declaration that is expected of a further one.
    expected: Option<u16>,
    /// They have differed.
    changed: bool,
}

impl Protocols {
    /// Adds the parameters of one server's `listen` for an address; true if nginx warns of a contradiction.
    ///
    /// A server may leave out parameters of the `listen` with socket options, and only those.
    pub(super) fn add(&mut self, listen: &ListenDraft) -> bool {
        let bits = u16::from(listen.proxy_protocol)
            | u16::from(listen.ssl) << 1
            | u16::from(listen.protocols.bits()) << 2;
        let with_options = listen.options.is_some();
        let Some(said) = self.0.get_mut(&listen.addr) else {
            let first = AddrProtocols {
                all: bits,
                with_options,
                expected: None,
                changed: false,
            };
            self.0.insert(listen.addr.clone(), first);
            return false;
        };
        let before = said.all;
        let unexpected = said.expected.is_some_and(|expected| expected != bits);
        let had_options = said.with_options || with_options;
        let warn = if before | bits != before {
            said.expected = Some(before);
            let warn = (had_options && !with_options) || said.changed || before | bits != bits;
            said.changed = true;
            warn
        } else {
            said.expected = Some(bits);
            if before == bits {
                (with_options && said.changed) || unexpected
            } else {
                said.changed = true;
                with_options || unexpected
            }
        };
        said.all |= bits;
        said.with_options = had_options;
        warn
    }
}

/// The directive without its words and its block: enough to name its line.
pub(super) fn head(d: &Directive) -> Directive {
    Directive {
        name: d.name.clone(),
        args: Vec::new(),
        block: None,
        pos: d.pos,
        end_line: d.end_line,
        close_line: d.close_line,
        origin: d.origin.clone(),
    }
}

/// Every address with TLS needs a certificate in its default server, or one that refuses every handshake and
/// certificates in all others.
///
/// # Errors
/// nginx's, at the server that lacks one.
pub(super) fn check_certificates(
    listens: &[ListenDraft],
    servers: &[ServerDraft],
) -> Result<(), ConfError> {
    let missing = |server: usize| {
        let text = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
        Err(ConfError::at(&servers[server].at, text))
    };
    let mut addresses = by_address(listens);
    addresses.retain(|same| same.iter().any(|l| l.ssl));
    for same in addresses {
        let default = same.iter().find(|l| l.default).unwrap_or(&same[0]).server;
        match &servers[default].tls {
            Some(tls) if tls.has_certificates() => {}
            Some(tls) if tls.rejects() => {
                let is_bare = |l: &&&ListenDraft| {
                    let tls = servers[l.server].tls.as_ref();
                    tls.is_none_or(|tls| !tls.has_certificates() && !tls.rejects())
                };
                let bare = same.iter().find(is_bare);
                if let Some(listen) = bare {
                    return missing(listen.server);
                }
            }
            _ => return missing(default),
        }
    }
    Ok(())
}

/// Protocols of an arm are chosen by ALPN, so that its host needs TLS.
///
/// # Errors
/// At the first host without `listen ... ssl`.
pub(super) fn check_arm_hosts(
    listens: &[ListenDraft],
    servers: &[ServerDraft],
    experiments: &[Experiment],
) -> Result<(), ConfError> {
    for arm in experiments.iter().flat_map(|experiment| &experiment.arms) {
        let Some(host) = arm.host.as_ref().filter(|host| host.protocols.is_some()) else {
            continue;
        };
        let mut own = listens.iter().filter(|l| l.server == host.server);
        // A server may leave out `ssl` if another one has it for the address.
        let has_tls = |own: &ListenDraft| listens.iter().any(|l| l.ssl && l.addr == own.addr);
        if !own.any(has_tls) {
            let name = arm.name;
            let text = format!(
                "\"protocols=\" of the arm \"{name}\" needs \"listen ... ssl\" in this server"
            );
            return Err(ConfError::at(&servers[host.server].at, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(ssl: bool, options: bool) -> ListenDraft {
        let mut listen = ListenDraft::default_for(0);
        listen.ssl = ssl;
        listen.options = options.then(Default::default);
        listen
    }

    fn warnings(list: &[(bool, bool)]) -> Vec<bool> {
        let mut protocols = Protocols::default();
        let add = |(ssl, options): &(bool, bool)| protocols.add(&listen(*ssl, *options));
        list.iter().map(add).collect()
    }

    #[test]
    fn the_same_protocols_everywhere_are_no_contradiction() {
        assert_eq!(warnings(&[(true, false); 3]), [false; 3]);
        assert_eq!(warnings(&[(true, true), (true, false)]), [false; 2]);
    }

    #[test]
    fn servers_may_leave_to_another_what_it_says() {
        assert_eq!(warnings(&[(true, true), (false, false)]), [false; 2]);
        assert_eq!(warnings(&[(true, false), (false, false)]), [false; 2]);
        assert_eq!(warnings(&[(false, false), (true, false)]), [false; 2]);
    }

    #[test]
    fn servers_that_disagree_are_told() {
        assert_eq!(warnings(&[(false, true), (true, false)]), [false, true]);
        assert_eq!(warnings(&[(true, false), (false, true)]), [false, true]);
        let third = [(true, false), (false, false), (true, false)];
        assert_eq!(warnings(&third), [false, false, true]);
    }
}
