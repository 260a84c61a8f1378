//! Settings of a location, and the directives that FastCGI alone has.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::{FromArgs, Text};
use server_base::regex::Regex;
use server_http::settings;

use crate::gateways::params::Params;
use crate::gateways::{Common, inherit};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct FastCgiLoc: Location / PLAIN {
        /// A parameter of requests to applications.
        param "fastcgi_param": Params = Params::default(), "", HSL;
        /// Text after a URI that ends in "/", in $fastcgi_script_name.
        index "fastcgi_index": Text = Text::default(), "", HSL;
        /// An expression that splits the URI: its two groups are $fastcgi_script_name and $fastcgi_path_info.
        split_path_info "fastcgi_split_path_info": SplitPathInfo = SplitPathInfo::default(), "", HSL;
        /// A text that makes a response invalid if the application writes it to its error stream.
        catch_stderr "fastcgi_catch_stderr": CaughtTexts = CaughtTexts::default(), "", HSL;
        /// Whether applications should keep connections open.
        keep_conn "fastcgi_keep_conn": bool = false, "off", HSL;
    }
    extra {
        /// Settings that FastCGI shares with other protocols of applications.
        common: Common
    }
    merge inherit;
}

/// `fastcgi_split_path_info`; the last of several, as in nginx.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitPathInfo(pub(super) Option<Arc<Regex>>);

impl FromArgs for SplitPathInfo {
    const SYNTAX: &'static str = "regex";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let regex = Regex::compile(cx, d, d.word(0), d.arg(0), false)?;
        if regex.groups != 2 {
            let text = format!("pattern \"{}\" must have 2 captures", d.arg_str(0));
            return Err(ConfError::word(d, d.word(0), text));
        }
        Ok(Self(Some(Arc::new(regex))))
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::parse(cx, d)
    }
}

/// `fastcgi_catch_stderr`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaughtTexts(pub(super) Arc<Vec<Box<[u8]>>>);

impl FromArgs for CaughtTexts {
    const SYNTAX: &'static str = "string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Arc::make_mut(&mut self.0).push(d.arg(0).into());
        Ok(self)
    }
}
