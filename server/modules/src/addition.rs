//! `add_before_body`, `add_after_body`, `addition_types`: the bodies of subrequests around that of a response.
//!
//! Added text keeps the modification time of the response and makes its ETag weak. As in nginx the arguments of the
//! request are not passed to the subrequests.
//!
//! Source: nginx documentation, `ngx_http_addition_module`.

use conf::Contexts;
use server_base::from_args::Text;
use server_base::mime::{ALWAYS, MimeTypes};
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::reply::weaken;
use server_http::settings;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "addition",
    directives: &[PLAIN],
    settings: &[<AdditionLoc as server_http::settings_set::Conf>::def],
    header_stage: Some(stage),
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct AdditionLoc: Location / PLAIN {
        /// The path of a subrequest; its body precedes that of the response.
        before "add_before_body": Text = Text(Vec::new()), "", Contexts::HTTP_SERVER_LOCATION;
        /// The path of a subrequest; its body follows that of the response.
        after "add_after_body": Text = Text(Vec::new()), "", Contexts::HTTP_SERVER_LOCATION;
        /// Media types of responses with additions, besides text/html; * for all.
        types "addition_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", Contexts::HTTP_SERVER_LOCATION;
    }
}

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let conf: &AdditionLoc = x.route.loc();
    let path = |text: &Text| Some(text.0.clone()).filter(|path| !path.is_empty());
    let (before, after) = (path(&conf.before), path(&conf.after));
    if x.reply.status != 200 || (before.is_none() && after.is_none()) {
        return Ok(());
    }
    if !conf.types.matches(x.reply.content_type.media_type()) {
        return Ok(());
    }
    x.reply.content_length = None;
    x.reply.forbid_ranges();
    weaken(&mut x.reply);
    x.add_around(before, after);
    Ok(())
}
