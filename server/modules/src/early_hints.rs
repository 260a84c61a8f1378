//! `early_hints`, `early_hints_link`: a 103 response with resources that the client may fetch early.
//!
//! Hints are computed once per request, when its location is known. They are sent before the first wait, but not before
//! access has been granted, or in one write with the response. A request gets none if an access handler refuses it, or
//! if it is refused without a wait.
//!
//! The 103 of an upstream server is forwarded under the same conditions ([`are_wanted`]).
//!
//! Source: nginx documentation, directive `early_hints`; RFC 8297. `early_hints_link` is not nginx's.

use std::rc::Rc;

use conf::{ConfError, Contexts};
use engines::http::{ResponseHead, Version};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Module, Step};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "early_hints",
    directives: &[PLAIN, ROWS],
    settings: &[<EarlyLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::PreAccess(hint)],
    on_demand: true,
    finish: Some(warn_of_missing_conditions),
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct EarlyLoc: Location / PLAIN {}
    extra {
        /// `early_hints`: one of them must hold.
        conditions: Vec<Value> = inherited,
        /// `early_hints_link`.
        links: Vec<Value> = inherited,
        /// The warning about the first link, which counts if there are no conditions.
        warning: Option<ConfError>
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Early hints are sent if one of the values is neither empty nor 0.
    directive "early_hints": Contexts::HTTP_SERVER_LOCATION, ONE_MORE, "", "string ..." => |b, d| {
        for word in &d.args {
            let value = Value::compile(b, d, word)?;
            b.conf_mut::<EarlyLoc>().conditions.push(value);
        }
        Ok(())
    };

    /// A Link field of the 103 before the response, if early_hints allows it.
    directive "early_hints_link": Contexts::HTTP_SERVER_LOCATION, TAKE1, "", "value" => |b, d| {
        let value = Value::compile(b, d, d.word(0))?;
        let conf = b.conf_mut::<EarlyLoc>();
        conf.links.push(value);
        conf.warning.get_or_insert_with(|| {
            ConfError::directive(d, "has no effect without \"early_hints\"")
        });
        Ok(())
    };
}

/// Warns of links without any conditions: they would never be sent.
fn warn_of_missing_conditions(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut warning = None;
    for conf in b.location_confs_mut::<EarlyLoc>() {
        if !conf.links.is_empty() && !conf.conditions.is_empty() {
            return Ok(());
        }
        warning = warning.or(conf.warning.take());
    }
    if let Some(warning) = warning {
        b.warn(warning);
    }
    Ok(())
}

/// Whether one of the conditions of `early_hints` holds.
pub(crate) fn are_wanted(x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
    let http = Rc::clone(&x.route.http);
    let conf: &EarlyLoc = x.loc(&http);
    conf.conditions.iter().any(|value| value.is_true(x, cx))
}

fn hint(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    if x.route.loc::<EarlyLoc>().links.is_empty()
        || x.head.version < Version::Http11
        || x.response.early_responses.is_some()
        || x.route.err_status != 0
    {
        return Step::Next;
    }
    let http = Rc::clone(&x.route.http);
    let conf: &EarlyLoc = x.loc(&http);
    if !are_wanted(x, cx) {
        return Step::Next;
    }
    let mut hints = ResponseHead::default();
    for link in &conf.links {
        let value = link.to_vec(x, cx);
        if !value.is_empty() {
            hints.push(b"Link", &value);
        }
    }
    if !hints.fields.is_empty() {
        hints.status = EARLY_HINTS;
        x.hint(hints);
    }
    Step::Next
}

/// RFC 8297.
const EARLY_HINTS: u16 = 103;
