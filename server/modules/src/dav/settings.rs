//! The directives of the module.

use conf::{Arity, ConfError, Contexts, Directive};
use engines::http::Method;
use server_base::config::ConfigContext;
use server_base::from_args::{Access, FromArgs, Number};
use server_http::assemble::method_bit;
use server_http::settings;

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct DavLoc: Location / PLAIN {
        /// Methods that change files.
        methods "dav_methods": Methods = Methods(0), "off", HSL;
        /// Permissions of files and directories that are made.
        access "dav_access": Access = Access(0o600), "user:rw", HSL;
        /// Whether PUT makes the directories on the way to its file.
        create_full_put_path "create_full_put_path": bool = false, "off", HSL;
        /// How many segments a URI must have at least for DELETE.
        min_delete_depth "min_delete_depth": Number = Number(0), "0", HSL;
    }
}

/// `dav_methods`: a mask of [`method_bit`]s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Methods(pub(crate) u32);

impl FromArgs for Methods {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "off | method ...";

    fn parse(b: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let (mut mask, mut off) = (0, false);
        for word in &d.args {
            let bit = match word.text.to_ascii_lowercase().as_slice() {
                b"off" => {
                    off = true;
                    continue;
                }
                b"put" => method_bit(Method::Put),
                b"delete" => method_bit(Method::Delete),
                b"mkcol" => method_bit(Method::Mkcol),
                b"copy" => method_bit(Method::Copy),
                b"move" => method_bit(Method::Move),
                _ => return Err(ConfError::invalid(d, word)),
            };
            if mask & bit != 0 {
                let text = format!("duplicate value \"{}\"", word.as_str());
                b.warn(ConfError::word(d, word, text));
            }
            mask |= bit;
        }
        if off && mask != 0 {
            let text = "\"off\" has no effect together with methods in \"dav_methods\"";
            b.warn(ConfError::at(d, text));
        }
        Ok(Self(mask))
    }
}
