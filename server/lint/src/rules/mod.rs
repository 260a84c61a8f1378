//! The rules, each with its code: the table that `docs/lint.md` explains.
//!
//! The hundreds are subjects; a code never changes its meaning, and one that is given up is not used again.

mod access;
mod alias;
mod endless;
mod files;
mod gateways;
mod headers;
mod host;
mod ifs;
mod location;
mod logs;
mod lost;
mod origin;
mod proxied;
pub(crate) mod redirect;
mod resolver;
mod servers;
mod splitting;
mod tls;

use crate::Warn;
use crate::allow;
use crate::tree::Tree;

/// One kind of warning.
pub(crate) struct Rule {
    /// The code in messages and silencing comments.
    pub(crate) code: &'static str,
    /// A short description of the problem: the heading in the documentation.
    pub(crate) title: &'static str,
    /// Looks for it.
    pub(crate) check: fn(&Tree, &mut Warn<'_>),
}

const fn rule(code: &'static str, title: &'static str, check: fn(&Tree, &mut Warn<'_>)) -> Rule {
    Rule { code, title, check }
}

/// The code as the table has it, if there is one.
pub(crate) fn known(code: &str) -> Option<&'static str> {
    RULES
        .iter()
        .map(|rule| rule.code)
        .find(|known| *known == code)
}

/// All rules, by code.
#[rustfmt::skip] // One line a rule.
pub(crate) const RULES: &[Rule] = &[
    rule("FB001", "a silencing comment names an unknown code", allow::unknown_codes),
    rule("FB002", "a comment for firstbyte silences nothing", allow::useless),

    rule("FB101", "a line end can be put into a header", splitting::check),
    rule("FB102", "the client chooses the server behind", proxied::check),
    rule("FB103", "`$http_host` where `$host` is meant", host::check),
    rule("FB104", "an expression lets foreign origins in", origin::expressions),
    rule("FB105", "`none` among the valid referrers", origin::no_referrer),
    rule("FB106", "names are looked up at a foreign server", resolver::check),
    rule("FB107", "an expression backtracks without end", endless::check),

    rule("FB201", "`alias` in a location without a slash", alias::open_location),
    rule("FB202", "`alias` without the slash of its location", alias::missing_slash),
    rule("FB203", "`try_files` and `alias` do not fit together", files::try_files_and_alias),
    rule("FB204", "a location without the `root` of the others", files::root_in_locations),
    rule("FB205", "`if` asks for a file", files::if_file),
    rule("FB206", "a dot that matches anything before an extension", files::dot),

    rule("FB301", "headers of the level above are lost", headers::lost),
    rule("FB302", "a header over several lines", headers::several_lines),
    rule("FB303", "`add_header Content-Type`", headers::content_type),
    rule("FB304", "the version is told on purpose", headers::version),

    rule("FB401", "`allow` without `deny`", access::allow_alone),
    rule("FB402", "an access rule that is never asked", access::unreachable),
    rule("FB403", "`return` answers before access is checked", access::return_first),
    rule("FB404", "the client chooses the user file", access::user_file),

    rule("FB501", "`if` in a location with more than rewriting", ifs::settings),
    rule("FB502", "`if` switches `try_files` off", ifs::try_files),

    rule("FB601", "a server name that is taken", servers::taken),
    rule("FB602", "no default server was chosen", servers::no_default),
    rule("FB603", "a certificate, but no TLS on port 443", servers::no_tls),

    rule("FB701", "a log file called `off`", logs::called_off),
    rule("FB702", "the client names the log file", logs::named_by_client),
    rule("FB703", "a log file is opened for each line", logs::opened_each_time),

    rule("FB801", "obsolete versions of TLS", tls::protocols),
    rule("FB802", "broken ciphers", tls::ciphers),

    rule("FB901", "a script that may not exist is given to PHP", gateways::unchecked_script),
    rule("FB902", "parameters of the level above are lost", gateways::lost),
    rule("FB903", "an application is not told what is asked for", gateways::untold),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(RULES.is_sorted_by(|a, b| a.code < b.code));
    }
}
