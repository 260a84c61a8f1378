//! `auth_basic`, `auth_basic_user_file`: access control by name and password.
//!
//! The user file is read for each request, so a change is effective at once. A slow hash is computed on another thread,
//! and takes equally long for an unknown name (see [`comparison`]). A successful comparison with a slow hash is cached
//! for a while (see [`verified`]). `auth_delay` belongs to the core. Absent: `Proxy-Authorization`, since there are no
//! tunnels.
//!
//! Source: nginx documentation, `ngx_http_auth_basic_module`; RFC 7617.

mod comparison;
mod cost;
mod crypt;
mod des;
mod entries;
mod password;
mod user_file;
mod verified;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::config::ConfigContext;
use server_base::errlog::{Level, Printable};
use server_base::from_args::FromArgs;
use server_http::builtin::basic_credentials;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Access, Handler, Module};
use server_http::paths;
use server_http::settings;
use server_http::value::Value;

use comparison::{Answer, Question};
use password::Verdict;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "auth_basic",
    directives: &[PLAIN],
    settings: &[<AuthBasicLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Access(check)],
    on_demand: true,
    ..Module::EMPTY
};

const WHERE: Contexts = Contexts::HTTP_SERVER_LOCATION.or(Contexts::LIMIT_EXCEPT);

settings! {
    /// Settings of the module.
    pub(crate) struct AuthBasicLoc: Location / PLAIN {
        /// Realm of the challenge for name and password; `off` for no challenge.
        realm "auth_basic": Realm = Realm(None), "off", WHERE;
        /// The file with names and passwords.
        file "auth_basic_user_file": UserFile = UserFile(None), "", WHERE;
    }
}

/// The value of `auth_basic`; `None` inside is "off".
#[derive(Clone)]
pub(crate) struct Realm(Option<Value>);

impl FromArgs for Realm {
    const SYNTAX: &'static str = "string | off";

    fn parse(build: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Value::compile(build, d, d.word(0)).map(|value| Self(Some(value)))
    }
}

/// The value of `auth_basic_user_file`, and the directory that it is relative to.
#[derive(Clone)]
pub(crate) struct UserFile(Option<(Value, Arc<Path>)>);

impl FromArgs for UserFile {
    const SYNTAX: &'static str = "file";

    fn parse(build: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let path = Value::compile(build, d, d.word(0))?;
        Ok(Self(Some((path, build.conf_loader().conf_prefix().into()))))
    }
}

/// Returns whether clients need a name and a password.
pub(crate) fn is_on(conf: &AuthBasicLoc) -> bool {
    let realm = conf.realm.0.as_ref();
    let is_off = realm.is_none_or(|realm| realm.constant() == Some(b"off"));
    !is_off && conf.file.0.is_some()
}

fn check(x: &mut Exchange, cx: &mut Ctx<'_>) -> Access {
    if x.route.loc::<AuthBasicLoc>().file.0.is_none() {
        return Access::NoOpinion;
    }
    let http = Rc::clone(&x.route.http);
    let conf: &AuthBasicLoc = x.loc(&http);
    let (Realm(Some(realm)), UserFile(Some((file, dir)))) = (&*conf.realm, &*conf.file) else {
        return Access::NoOpinion;
    };
    let realm = realm.to_vec(x, cx);
    if realm == b"off" {
        return Access::NoOpinion;
    }
    let Some((user, password)) = basic_credentials(x).filter(|(user, _)| !user.is_empty()) else {
        let text = format_args!("no user/password was provided for basic authentication");
        x.log(Level::Info, text);
        return challenge(x, &realm);
    };
    let path = match paths::evaluate_path(x, cx, file, dir) {
        Ok(path) => path,
        // As for a missing user file, which refuses all clients.
        Err(404) => return Access::Deny(403),
        Err(status) => return Access::Deny(status),
    };
    let question = Question {
        path: path.clone(),
        user: user.clone(),
        password,
    };
    let verdict = match comparison::answer(x, cx, question) {
        Answer::Verdict(verdict) => verdict,
        Answer::Wait => return Access::Wait,
        Answer::Failed(status) => return Access::Deny(status),
    };
    let user = Printable(&user);
    match verdict {
        Verdict::Right => return Access::Allow,
        Verdict::Wrong => {
            let text = format_args!("user \"{user}\": password mismatch");
            x.log(Level::Error, text);
        }
        Verdict::Unknown => {
            let text = format_args!("user \"{user}\": unknown password format in the file");
            x.log(Level::Error, text);
        }
        Verdict::Nobody => {
            let path = Printable(&path);
            let text = format_args!("user \"{user}\" was not found in \"{path}\"");
            x.log(Level::Error, text);
        }
    }
    challenge(x, &realm)
}

/// Adds the challenge for a name and a password.
fn challenge(x: &mut Exchange, realm: &[u8]) -> Access {
    let value = [b"Basic realm=\"", realm, b"\""].concat();
    let id = FieldId::WwwAuthenticate;
    x.reply.fields.push_id(id, b"WWW-Authenticate", &value);
    Access::Deny(401)
}
