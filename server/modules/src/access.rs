//! `allow`, `deny`: access control by the address of the client.
//!
//! The rules of a level replace those of the enclosing level. The first rule that matches decides.
//!
//! Source: nginx documentation, `ngx_http_access_module`.

use std::net::IpAddr;

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::Level;
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::Satisfy;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange, Peer};
use server_http::module::{Access, Handler, Inherit, Module};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::trace::{At, Event};

use crate::networks::{Network, mask_v6};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "access",
    directives: &[PLAIN, ROWS],
    settings: &[<AccessLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Access(check)],
    inherits: &[("deny", Inherit::With("allow"))],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct AccessLoc: Location / PLAIN {}
    extra {
        /// `allow` and `deny`, in order.
        rules: SharedList<Rule> = inherited
    }
}

/// One `allow` or `deny`.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// The addresses it applies to; `None` for all.
    network: Option<Network>,
    deny: bool,
}

const WHERE: Contexts = Contexts::HTTP_SERVER_LOCATION.or(Contexts::LIMIT_EXCEPT);

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Clients that may have a response.
    directive "allow": WHERE, TAKE1, "", "address | CIDR | unix: | all" => |b, d| rule(b, d, false);

    /// Clients that get 403.
    directive "deny": WHERE, TAKE1, "", "address | CIDR | unix: | all" => |b, d| rule(b, d, true);
}

fn rule(b: &mut ConfigBuilder, d: &Directive, deny: bool) -> Result<(), ConfError> {
    let network = match d.arg(0) {
        b"all" => None,
        b"unix:" => Some(Network::Unix),
        _ => {
            let network = Network::take(b, d, d.word(0));
            Some(network.ok_or_else(|| ConfError::parameter(d, d.word(0)))?)
        }
    };
    let rule = Rule { network, deny };
    b.conf_mut::<AccessLoc>().rules.push(rule);
    Ok(())
}

fn check(x: &mut Exchange, _: &mut Ctx<'_>) -> Access {
    let rules = &x.route.loc::<AccessLoc>().rules;
    debug_http!(x, "access: {} by {} rules", x.client.peer, rules.len());
    let Some(nth) = first(rules, x.client.peer) else {
        return Access::NoOpinion;
    };
    let deny = rules[nth].deny;
    x.record_event(|| {
        let text = if deny { "denies" } else { "allows" };
        Event::Ran(At::Argument("allow", nth), text.to_owned())
    });
    match deny {
        false => Access::Allow,
        true => {
            // With `satisfy any` another handler may still allow the request; the core logs a refusal by all of them.
            if *x.route.core_loc().satisfy == Satisfy::All {
                x.log(Level::Error, format_args!("access forbidden by rule"));
            }
            Access::Deny(403)
        }
    }
}

/// Returns whether the rules refuse any client; clients without a matching rule are allowed.
pub(crate) fn denies(conf: &AccessLoc) -> bool {
    conf.rules.iter().any(|rule| rule.deny)
}

/// Returns the index of the first rule that matches.
fn first(rules: &[Rule], peer: Peer) -> Option<usize> {
    let fits = |rule: &Rule| match rule.network {
        None => true,
        Some(network) => network.has(peer) || fits_mapped(network, peer, rules),
    };
    rules.iter().position(fits)
}

/// An IPv4-mapped IPv6 address is compared with the IPv6 networks only if no rule has an IPv4 network.
fn fits_mapped(network: Network, peer: Peer, rules: &[Rule]) -> bool {
    let (Network::V6(net, bits), Peer::Inet(addr)) = (network, peer) else {
        return false;
    };
    let IpAddr::V6(ip) = addr.ip() else {
        return false;
    };
    let about_v4 = |rule: &Rule| matches!(rule.network, None | Some(Network::V4(..)));
    ip.to_bits() & mask_v6(bits) == net && !rules.iter().any(about_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(rules: &[(&str, bool)], peer: &str) -> Option<bool> {
        let rules: Vec<_> = rules
            .iter()
            .map(|(text, deny)| Rule {
                network: Network::parse(text.as_bytes()).map(|(network, _)| network),
                deny: *deny,
            })
            .collect();
        let addr = format!("[{peer}]:1");
        let peer = Peer::Inet(addr.parse().expect("an address"));
        first(&rules, peer).map(|nth| rules[nth].deny)
    }

    #[test]
    fn an_ipv4_address_inside_an_ipv6_one_meets_ipv4_rules_if_there_are_any() {
        let mapped = "::ffff:192.0.2.1";
        assert_eq!(denied(&[("192.0.2.0/24", true)], mapped), Some(true));
        assert_eq!(denied(&[("::/0", true)], mapped), Some(true));
        assert_eq!(
            denied(&[("::/0", true), ("10.0.0.0/8", true)], mapped),
            None
        );
        assert_eq!(
            denied(&[("::/0", true), ("all", false)], mapped),
            Some(false)
        );
        assert_eq!(denied(&[("::/0", true)], "2001:db8::1"), Some(true));
    }
}
