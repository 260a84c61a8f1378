//! `random_index`: serves a random file of the directory.
//!
//! Source: nginx documentation, `ngx_http_random_index_module`.

use std::hash::{BuildHasher, RandomState};

use conf::Contexts;
use engines::http::Method;
use server_base::errlog::Level;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Inherit, Module};
use server_http::{paths, phases, settings};

use crate::autoindex;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "random_index",
    directives: &[PLAIN],
    settings: &[<RandomIndexLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Content(handle)],
    inherits: &[("random_index", Inherit::Around)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct RandomIndexLoc: Location / PLAIN {
        /// Whether a random file of the directory is sent for a URI that ends in a slash.
        enable "random_index": bool = false, "off", Contexts::LOCATION;
    }
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !*x.route.loc::<RandomIndexLoc>().enable
        || !x.target.uri.ends_with(b"/")
        || !matches!(x.target.method, Method::Get | Method::Head | Method::Post)
    {
        return Content::Declined;
    }
    let path = match paths::map_uri(x, cx) {
        Ok(path) => path,
        Err(status) => return Content::Status(status),
    };
    let listed = match cx.files.list(&path) {
        Ok(listed) => listed,
        Err(error) => return Content::Status(autoindex::not_listed(x, &path, error)),
    };
    let mut names = Vec::with_capacity(listed.len());
    for entry in listed {
        match entry.meta {
            Ok(meta) if meta.is_file => names.push(entry.name),
            Ok(_) => {}
            Err(error) => {
                let path = [path.as_slice(), &entry.name].concat();
                paths::log_failed(x, Level::Crit, &path, error);
                return Content::Status(500);
            }
        }
    }
    if names.is_empty() {
        return Content::Declined;
    }
    // Each `RandomState` has its own random keys.
    let at = RandomState::new().hash_one(x.client.connection) % names.len() as u64;
    let uri = [x.target.uri.as_slice(), &names[at as usize]].concat();
    let args = x.target.args.clone();
    phases::redirect(x, cx, &uri, &args);
    Content::Restart
}
