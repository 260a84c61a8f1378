//! The rules, each with its code: the table that `docs/lint.md` explains.
//!
//! The hundreds are subjects; a code never changes its meaning, and a dropped code is not reused.

mod access;
mod alias;
mod caches;
mod descriptors;
mod endless;
mod experiments;
mod files;
mod gateways;
mod headers;
mod host;
mod hsts;
mod ifs;
mod ip_hash;
mod location;
mod logs;
mod lost;
mod origin;
mod proxied;
pub(crate) mod redirect;
mod resolver;
mod server_tls;
mod servers;
mod splitting;
mod status;
mod tls;
mod unresolved;

use crate::Warn;
use crate::allow;
use crate::level::Level;
use crate::tree::Tree;

/// One kind of warning.
#[derive(Debug)]
pub struct Rule {
    /// The code in messages and silencing comments, `FB201`.
    pub code: &'static str,
    /// A short description of the problem: the heading in the documentation.
    pub title: &'static str,
    /// The severity of its warnings.
    pub level: Level,
    /// Function that finds the problem.
    pub(crate) check: Check,
}

type Check = fn(&Tree, &mut Warn<'_>);

const fn error(code: &'static str, title: &'static str, check: Check) -> Rule {
    rule(Level::Error, code, title, check)
}

const fn warn(code: &'static str, title: &'static str, check: Check) -> Rule {
    rule(Level::Warn, code, title, check)
}

const fn notice(code: &'static str, title: &'static str, check: Check) -> Rule {
    rule(Level::Notice, code, title, check)
}

const fn rule(level: Level, code: &'static str, title: &'static str, check: Check) -> Rule {
    Rule {
        code,
        title,
        level,
        check,
    }
}

/// Returns the code from the table; `None` if it is unknown.
pub(crate) fn find_code(code: &str) -> Option<&'static str> {
    RULES
        .iter()
        .map(|rule| rule.code)
        .find(|known| *known == code)
}

/// All rules, by code.
#[rustfmt::skip] // One line a rule.
pub(crate) const RULES: &[Rule] = &[
    warn("FB001", "a silencing comment names an unknown code", allow::unknown_codes),
    warn("FB002", "a silencing comment without effect", allow::useless),

    error("FB101", "a client can insert a line end into a header", splitting::check),
    error("FB102", "the client chooses the proxied server", proxied::check),
    warn("FB103", "`$http_host` instead of `$host`", host::check),
    warn("FB104", "an expression matches foreign origins", origin::expressions),
    warn("FB105", "`none` in `valid_referers`", origin::no_referrer),
    warn("FB106", "a resolver outside of the network", resolver::check),
    error("FB107", "an expression backtracks exponentially", endless::check),
    warn("FB108", "a cache key without the host", caches::key_without_host),
    warn("FB109", "a cache key without the URI", caches::key_without_uri),
    warn("FB110", "responses with cookies are stored", caches::stored_cookies),
    notice("FB111", "responses without a time are stored", caches::guessed_freshness),

    error("FB201", "`alias` in a location without a trailing slash", alias::open_location),
    warn("FB202", "`alias` without a trailing slash", alias::missing_slash),
    error("FB203", "`try_files` does not work with `alias`", files::try_files_and_alias),
    warn("FB204", "a location without `root`", files::root_in_locations),
    notice("FB205", "`if` tests for a file", files::if_file),
    notice("FB206", "an unescaped dot before an extension", files::dot),

    warn("FB301", "headers of the outer level are not inherited", headers::lost_fields),
    warn("FB302", "a header value with a line end", headers::several_lines),
    warn("FB303", "`add_header Content-Type`", headers::content_type),
    notice("FB304", "the server version is shown", headers::version),
    notice("FB305", "HSTS without `always`", hsts::without_always),
    warn("FB306", "HSTS over plain HTTP", hsts::over_plain),

    error("FB401", "`allow` without `deny all`", access::allow_alone),
    error("FB402", "an access rule that is never reached", access::unreachable),
    error("FB403", "`return` bypasses access rules", access::return_first),
    error("FB404", "the client chooses the password file", access::user_file),
    warn("FB405", "a status page without access rules", status::check),

    warn("FB501", "settings in an `if` of a location", ifs::settings),
    warn("FB502", "`if` disables `try_files`", ifs::try_files),

    warn("FB601", "a conflicting server name", servers::conflicting_names),
    notice("FB602", "no `default_server`", servers::no_default),
    error("FB603", "a certificate without `ssl` on port 443", servers::no_tls),
    warn("FB604", "fewer descriptors than connections", descriptors::check),
    warn("FB605", "arms of an experiment with different settings", experiments::differ),
    warn("FB606", "the host of an arm hides the timing of its files", experiments::hidden_times),
    warn("FB607", "`ip_hash` behind the PROXY protocol", ip_hash::check),

    warn("FB701", "a log file named `off`", logs::named_off),
    warn("FB702", "the client chooses the log file", logs::named_by_client),
    notice("FB703", "a log file is opened for each line", logs::opened_each_time),

    warn("FB801", "obsolete TLS versions", tls::protocols),
    warn("FB802", "weak ciphers", tls::ciphers),
    warn("FB803", "TLS to a public server without its name", server_tls::no_server_name),
    warn("FB804", "TLS to a public server without verification", server_tls::no_verification),

    error("FB901", "PHP gets a script that may not exist", gateways::unchecked_script),
    error("FB902", "parameters of the outer level are not inherited", gateways::lost_parameters),
    error("FB903", "an application without request parameters", gateways::missing_parameters),
    error("FB904", "a name without a `resolver`", unresolved::check),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(RULES.is_sorted_by(|a, b| a.code < b.code));
    }
}
