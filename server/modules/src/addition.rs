//! `add_before_body`, `add_after_body`, `addition_types`: the bodies of subrequests around that of a response.
//!
//! What is added makes no difference to the response's modification time, which stays; its ETag becomes a weak one. As
//! in nginx the arguments are paths: no question mark divides them, and no variable is looked for in them.
//!
//! Source: nginx documentation, `ngx_http_addition_module`.

use std::rc::Rc;

use conf::{Arity, Contexts, Row};
use server_core::build::Build;
use server_core::exchange::{Ctx, Exchange};
use server_core::mime::MimeTypes;
use server_core::module::Module;
use server_core::settings;
use server_core::typed::Text;

use server_core::reply::weaken;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "addition",
    directives: &[PLAIN, ROWS],
    units: &[<AdditionLoc as server_core::confs::Conf>::unit],
    header_stage: Some(stage),
    dormant: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct AdditionLoc: Location / PLAIN {
        /// The path of a subrequest whose body comes before that of the response.
        before "add_before_body": Text = Text(Vec::new()), "", Contexts::HTTP_SERVER_LOCATION;
        /// The path of a subrequest whose body comes after that of the response.
        after "add_after_body": Text = Text(Vec::new()), "", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `addition_types`.
        types: Option<MimeTypes>
    }
    merge inherit;
}

fn inherit(own: &mut AdditionLoc, parent: Option<&AdditionLoc>) {
    if own.types.is_none() {
        own.types = parent.and_then(|parent| parent.types.clone());
    }
    own.types.get_or_insert_with(|| MimeTypes::of(&[ALWAYS]));
}

const ROWS: &[Row<Build>] = &[Row {
    name: "addition_types",
    contexts: Contexts::HTTP_SERVER_LOCATION,
    arity: Arity::ONE_MORE,
    block: false,
    default: ALWAYS,
    doc: "Media types of responses that something is added to, besides text/html; * for all.",
    syntax: "mime-type ...",
    apply: |b, d| {
        let own = b.conf_mut::<AdditionLoc>().types.take();
        let types = MimeTypes::add(b, d, own, ALWAYS);
        b.conf_mut::<AdditionLoc>().types = Some(types);
        Ok(())
    },
}];

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.http);
    let conf: &AdditionLoc = x.loc(&http);
    let path = |text: &Text| Some(text.0.clone()).filter(|path| !path.is_empty());
    let (before, after) = (path(&conf.before), path(&conf.after));
    if x.reply.status != 200 || (before.is_none() && after.is_none()) {
        return Ok(());
    }
    let types = conf.types.as_ref();
    if !types.is_some_and(|types| types.matches(&x.reply.content_type)) {
        return Ok(());
    }
    x.reply.content_length = None;
    x.reply.allow_ranges = false;
    weaken(&mut x.reply);
    x.join_around(before, after);
    Ok(())
}

/// The type that something is added to whatever is said.
const ALWAYS: &str = "text/html";
