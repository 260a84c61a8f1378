//! Names without a row: directives of nginx that are not built, and unknown names.

use crate::nginx_directives::{nginx_directives, of_nginx};
use crate::suggest::nearest;
use crate::{ConfError, Contexts, Directive};

/// The modules of nginx a directive belongs to, separated by ", ".
pub fn known_to_nginx(name: &str) -> Option<&'static str> {
    of_nginx(name).map(|(_, modules, _)| *modules)
}

/// Returns the error for an unknown directive; `names` are the directives that the context knows, for a suggestion.
pub fn unknown(
    d: &Directive,
    context: Contexts,
    names: impl Iterator<Item = &'static str>,
) -> ConfError {
    let name = d.name();
    if let Some(modules) = known_to_nginx(name) {
        let module = module_for(modules, context);
        return ConfError::at(
            d,
            format!("directive \"{name}\" is not built yet: it belongs to {module}"),
        );
    }
    let error = ConfError::at(d, format!("unknown directive \"{name}\""));
    if name.starts_with('\u{feff}') {
        return error.with_hint("the file begins with a byte order mark: save it without one");
    }
    let here = nginx_directives().filter(|(_, _, contexts)| contexts.contains(context));
    // Names allowed here come first; otherwise the name may also be in the wrong context.
    let elsewhere = || nearest(name, nginx_directives().map(|(known, ..)| *known));
    match nearest(name, names.chain(here.map(|(known, ..)| *known))).or_else(elsewhere) {
        Some(meant) => error.with_hint(format!("did you mean \"{meant}\"?")),
        None => error,
    }
}

/// The modules of the context's subsystem if there are any; else all.
fn module_for(modules: &'static str, context: Contexts) -> String {
    const STREAM: Contexts = Contexts::STREAM
        .or(Contexts::STREAM_SERVER)
        .or(Contexts::STREAM_UPSTREAM);
    const MAIL: Contexts = Contexts::MAIL.or(Contexts::MAIL_SERVER);
    const HTTP: Contexts = Contexts::HTTP_TO_IF
        .or(Contexts::IF_IN_SERVER)
        .or(Contexts::LIMIT_EXCEPT);
    let prefix = match context {
        _ if STREAM.contains(context) => "ngx_stream_",
        _ if MAIL.contains(context) => "ngx_mail_",
        _ if HTTP.or(Contexts::UPSTREAM).contains(context) => "ngx_http_",
        _ => "ngx_",
    };
    let ours: Vec<_> = modules
        .split(", ")
        .filter(|module| module.starts_with(prefix))
        .collect();
    if ours.is_empty() {
        modules.to_owned()
    } else {
        ours.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::directive;

    fn error(text: &str, context: Contexts) -> (String, Option<String>) {
        let error = unknown(&directive(text), context, ["toy_name"].into_iter());
        (error.to_string(), error.hint().map(str::to_owned))
    }

    #[test]
    fn a_directive_of_nginx_names_its_module() {
        assert_eq!(
            known_to_nginx("proxy_buffering"),
            Some("ngx_http_proxy_module")
        );
        assert_eq!(known_to_nginx("nonsense"), None);
        let (message, hint) = error("access_log x;", Contexts::SERVER);
        let expected = "directive \"access_log\" is not built yet: it belongs to ngx_http_log_module in /a.conf:1";
        assert_eq!((message.as_str(), hint), (expected, None));
        let (message, _) = error("access_log x;", Contexts::STREAM);
        assert!(message.contains("ngx_stream_log_module in"), "{message}");
    }

    #[test]
    fn a_name_nobody_knows_is_compared_with_what_could_stand_there() {
        let (message, hint) = error("proxi_pass x;", Contexts::LOCATION);
        assert_eq!(message, "unknown directive \"proxi_pass\" in /a.conf:1");
        assert_eq!(hint.as_deref(), Some("did you mean \"proxy_pass\"?"));
        assert_eq!(
            error("proxi_pass x;", Contexts::EVENTS).1.as_deref(),
            Some("did you mean \"proxy_pass\"?")
        );
        assert_eq!(error("zzqqxxyy x;", Contexts::EVENTS).1, None);
        assert_eq!(
            error("toy_nam x;", Contexts::EVENTS).1.as_deref(),
            Some("did you mean \"toy_name\"?")
        );
    }

    #[test]
    fn a_byte_order_mark_is_told() {
        let (message, hint) = error("\u{feff}user x;", Contexts::MAIN);
        assert_eq!(message, "unknown directive \"\u{feff}user\" in /a.conf:1");
        assert!(hint.is_some_and(|hint| hint.contains("byte order mark")));
    }
}
