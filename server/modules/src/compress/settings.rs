//! The directives of compression.
//!
//! Source: nginx documentation, `ngx_http_gzip_module`; the manuals of ngx_brotli and of zstd-nginx-module.
//! Absent: `zstd_dict_file` (no browser knows the dictionary).

use std::sync::Arc;

use conf::{Arity, Builder, ConfError, Contexts, Directive, DirectiveDef};
use server_base::config::ConfigContext;
use server_base::from_args::{self, Buffers, FromArgs, Size};
use server_base::mime::{ALWAYS, MimeTypes};
use server_base::regex::Regex;
use server_http::assemble::ConfigBuilder;
use server_http::settings;
use server_http::settings_set::inherited;

use super::allowed::PROXIED;
use super::coding::{CODINGS, Coding, GZIP_WINDOW_LOG, Params};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings that exist once.
    pub(crate) struct CompressMain: Main / MAIN_PLAIN {
        /// Memory of each thread for compressed forms of files that have not changed; `off` for none.
        cache "compress_cache": CacheSize = CacheSize(4 << 20), "4m", Contexts::HTTP;
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct CompressLoc: Location / PLAIN {
        /// Whether responses are compressed with gzip.
        gzip "gzip": bool = false, "off", Contexts::HTTP_TO_IF;
        /// Number and size of buffers; a stream is passed on in pieces of this size.
        gzip_buffers "gzip_buffers": Buffers = BUFFERS, "32 4k", HSL;
        /// The level of gzip.
        gzip_level "gzip_comp_level": Level<1, 9> = Level(1), "1", HSL;
        /// The window of gzip.
        gzip_window "gzip_window": GzipWindow = GzipWindow(GZIP_WINDOW_LOG), "32k", HSL;
        /// Media types of responses that are compressed with gzip, besides text/html; * for all.
        gzip_types "gzip_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", HSL;
        /// Minimum length of a response to be compressed with gzip, if its length is known; bytes.
        gzip_min "gzip_min_length": Size = Size(20), "20", HSL;
        /// Adds `Vary: Accept-Encoding`, by which caches keep the encodings apart.
        vary "gzip_vary": bool = true, "on", HSL;
        /// The lowest version of HTTP in requests for gzip.
        version "gzip_http_version": HttpVersion = HttpVersion::V11, "1.1", HSL;
        /// Whether responses are compressed with Brotli.
        brotli "brotli": bool = false, "off", Contexts::HTTP_TO_IF;
        /// Number and size of buffers; a stream is passed on in pieces of this size.
        brotli_buffers "brotli_buffers": Buffers = BUFFERS, "32 4k", HSL;
        /// Brotli's level.
        brotli_level "brotli_comp_level": Level<0, 11> = Level(6), "6", HSL;
        /// Brotli's window.
        brotli_window "brotli_window": Window = Window(19), "512k", HSL;
        /// Media types of responses that are compressed with Brotli, besides text/html; * for all.
        brotli_types "brotli_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", HSL;
        /// Minimum length of a response to be compressed with Brotli, if its length is known; bytes.
        brotli_min "brotli_min_length": Size = Size(20), "20", HSL;
        /// Whether responses are compressed with Zstandard.
        zstd "zstd": bool = false, "off", Contexts::HTTP_TO_IF;
        /// Number and size of buffers; a stream is passed on in pieces of this size.
        zstd_buffers "zstd_buffers": Buffers = BUFFERS, "32 4k", HSL;
        /// Zstandard's level.
        zstd_level "zstd_comp_level": Level<1, 22> = Level(1), "1", HSL;
        /// Media types of responses that are compressed with Zstandard, besides text/html; * for all.
        zstd_types "zstd_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", HSL;
        /// Minimum length of a response to be compressed with Zstandard, if its length is known; bytes.
        zstd_min "zstd_min_length": Size = Size(20), "20", HSL;
        /// Codings by preference, if the client prefers several equally.
        order "compress_order": CodingOrder = CodingOrder(Coding::ALL), "br zstd gzip", HSL;
    }
    extra {
        /// `gzip_proxied`, a mask; 0 if unset.
        proxied: u32,
        /// `gzip_disable`.
        disable: Option<Disabled> = inherited,
        /// Whether any coding is on.
        any: bool
    }
    merge inherit;
}

fn inherit(own: &mut CompressLoc, parent: Option<&CompressLoc>) {
    own.any = *own.gzip || *own.brotli || *own.zstd;
    if own.proxied == 0 {
        own.proxied = parent.map_or(super::allowed::OFF, |parent| parent.proxied);
    }
}

impl CompressLoc {
    /// Whether a coding is on.
    pub(super) fn is_on(&self, coding: Coding) -> bool {
        match coding {
            Coding::Gzip => *self.gzip,
            Coding::Brotli => *self.brotli,
            Coding::Zstd => *self.zstd,
        }
    }

    /// The media types of responses.
    pub(super) fn types(&self, coding: Coding) -> &MimeTypes {
        match coding {
            Coding::Gzip => &self.gzip_types,
            Coding::Brotli => &self.brotli_types,
            Coding::Zstd => &self.zstd_types,
        }
    }

    /// The least length of a response.
    pub(super) fn min_bytes(&self, coding: Coding) -> u64 {
        match coding {
            Coding::Gzip => self.gzip_min.0,
            Coding::Brotli => self.brotli_min.0,
            Coding::Zstd => self.zstd_min.0,
        }
    }

    /// The parameters that determine the compressed bytes.
    pub(super) fn params(&self, coding: Coding) -> Params {
        let (level, window_log) = match coding {
            Coding::Gzip => (self.gzip_level.0, self.gzip_window.0),
            Coding::Brotli => (self.brotli_level.0, self.brotli_window.0),
            Coding::Zstd => (self.zstd_level.0, 0),
        };
        Params {
            coding,
            level,
            window_log,
        }
    }

    /// Returns the size of the output chunks of a stream, bytes.
    pub(super) fn piece_bytes(&self, coding: Coding) -> usize {
        let buffers = match coding {
            Coding::Gzip => &self.gzip_buffers,
            Coding::Brotli => &self.brotli_buffers,
            Coding::Zstd => &self.zstd_buffers,
        };
        usize::try_from(buffers.size).unwrap_or(usize::MAX)
    }
}

/// `gzip_disable`.
#[derive(Clone, Default)]
pub(crate) struct Disabled {
    /// Old versions of Internet Explorer.
    pub(super) msie6: bool,
    pub(super) patterns: Vec<Arc<Regex>>,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Responses to compress with gzip if the request came through a proxy (field Via).
    directive "gzip_proxied": HSL, ONE_MORE, "off",
        "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any ..." => |b, d| {
            let before = b.conf_mut::<CompressLoc>().proxied;
            let mask = conf::mask_more(b.loader(), d, PROXIED, before)?;
            b.conf_mut::<CompressLoc>().proxied = mask;
            Ok(())
        };

    /// Clients, by their User-Agent, that get nothing compressed with gzip; msie6 for old Internet Explorers.
    directive "gzip_disable": HSL, ONE_MORE, "", "regex ..." => disable;
}

/// All of them.
pub(super) const DIRECTIVES: &[&[DirectiveDef<ConfigBuilder>]] = &[MAIN_PLAIN, PLAIN, ROWS];

fn disable(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut disabled = b
        .conf_mut::<CompressLoc>()
        .disable
        .take()
        .unwrap_or_default();
    for word in &d.args {
        if word.text == b"msie6" {
            disabled.msie6 = true;
        } else {
            let regex = Regex::compile(b, d, word, &word.text, true)?;
            disabled.patterns.push(Arc::new(regex));
        }
    }
    b.conf_mut::<CompressLoc>().disable = Some(disabled);
    Ok(())
}

/// A level between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<const LOW: u64, const HIGH: u64>(u8);

impl<const LOW: u64, const HIGH: u64> FromArgs for Level<LOW, HIGH> {
    const SYNTAX: &'static str = "level";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let level = conf::between(d, conf::number(d)?, LOW, HIGH)?;
        u8::try_from(level)
            .map(Self)
            .map_err(|_| from_args::invalid(d))
    }
}

/// `brotli_window`, as a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window(u8);

impl FromArgs for Window {
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = conf::size(d)?;
        if size.is_power_of_two() && (1 << 10..=1 << 24).contains(&size) {
            return Ok(Self(size.trailing_zeros() as u8));
        }
        let text = "must be 1k, 2k, 4k, 8k, 16k, 32k, 64k, 128k, 256k, 512k, 1m, 2m, 4m, 8m or 16m";
        Err(ConfError::directive(d, text))
    }
}

/// `gzip_window`, as a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GzipWindow(u8);

impl FromArgs for GzipWindow {
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = conf::size(d)?;
        if size.is_power_of_two() && (1 << 9..=1 << GZIP_WINDOW_LOG).contains(&size) {
            return Ok(Self(size.trailing_zeros() as u8));
        }
        let text = "must be 512, 1k, 2k, 4k, 8k, 16k, or 32k";
        Err(ConfError::directive(d, text))
    }
}

/// `compress_cache`, bytes; 0 for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheSize(pub(super) u64);

impl FromArgs for CacheSize {
    const SYNTAX: &'static str = "size | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"off" => Ok(Self(0)),
            _ => conf::offset(d).map(Self),
        }
    }
}

/// `compress_order`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodingOrder(pub(super) [Coding; CODINGS]);

impl FromArgs for CodingOrder {
    const ARITY: Arity = Arity::TAKE123;
    const SYNTAX: &'static str = "br | zstd | gzip ...";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let mut order = Vec::with_capacity(CODINGS);
        for word in &d.args {
            let known = Coding::ALL
                .into_iter()
                .find(|coding| coding.token().as_bytes() == word.as_bytes());
            let coding = known.ok_or_else(|| ConfError::invalid(d, word))?;
            if order.contains(&coding) {
                return Err(ConfError::word(
                    d,
                    word,
                    format!("duplicate value \"{}\"", word.as_str()),
                ));
            }
            order.push(coding);
        }
        // Codings that are not listed come last.
        let named = order.len();
        order.extend(Coding::ALL.into_iter().filter(|coding| {
            !d.args[..named]
                .iter()
                .any(|w| coding.token().as_bytes() == w.as_bytes())
        }));
        let all = order.try_into().map_err(|_| from_args::invalid(d))?;
        Ok(Self(all))
    }
}

server_base::keyword! {
    /// `gzip_http_version`.
    pub enum HttpVersion {
        /// HTTP/1.0 and later.
        V10 = "1.0",
        /// HTTP/1.1 and later.
        V11 = "1.1",
    }
}

/// nginx's default on machines with pages of 4 KB.
pub(super) const BUFFERS: Buffers = Buffers {
    number: 32,
    size: 4 << 10,
};
