//! Core settings at location scope, those of files apart.

use std::sync::{Arc, OnceLock};

use conf::{ConfError, Contexts, Directive, Pos};
use server_base::config::ConfigContext;
use server_base::errlog::ErrorLog;
use server_base::files::TempDir;
use server_base::from_args::{FromArgs, Millis, Number, Offset, Size, Text};
use server_base::hash::ConfigMap;
use server_base::keyword;
use server_base::opened::{ErrorLogConf, LogTarget, OpenedLogs};
use server_base::shared_list::SharedList;

use super::files::StaticFiles;
use super::request_body::{BodyRate, InFile};
use crate::settings;
use crate::settings_set::inherited;
use crate::value::{SizeValue, Value};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;
const HSLI: Contexts = Contexts::HTTP_TO_IF;

keyword! {
    /// `satisfy`.
    pub enum Satisfy {
        /// Every access module must allow.
        All = "all",
        /// One access module must allow.
        Any = "any",
    }
}

keyword! {
    /// `if_modified_since`.
    pub enum IfModifiedSince {
        /// The header is ignored.
        Off = "off",
        /// The times must be equal.
        Exact = "exact",
        /// The content must not be newer.
        Before = "before",
    }
}

keyword! {
    /// `lingering_close`.
    pub enum Lingering {
        /// Close at once.
        Off = "off",
        /// Linger if the client may still be sending.
        On = "on",
        /// Linger always.
        Always = "always",
    }
}

/// `server_tokens`.
#[derive(Clone, Debug)]
pub enum ServerTokens {
    /// Name and version.
    On,
    /// Name alone.
    Off,
    /// Name, version and build.
    Build,
}

impl FromArgs for ServerTokens {
    const SYNTAX: &'static str = "on | off | build";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"on" => Ok(Self::On),
            b"off" => Ok(Self::Off),
            b"build" => Ok(Self::Build),
            _ => Err(ConfError::invalid(d, d.word(0))),
        }
    }
}

/// `keepalive_timeout`.
#[derive(Clone, Copy, Debug)]
pub struct KeepaliveTimeout {
    /// Time that an idle connection is kept, milliseconds; 0 closes after each response.
    pub idle_ms: u64,
    /// Seconds of the field `Keep-Alive: timeout=`, if it is sent.
    pub header_s: Option<u64>,
}

/// `keepalive_disable`, a mask.
#[derive(Clone, Copy, Debug)]
pub struct KeepaliveDisable {
    /// Old Internet Explorer after a POST.
    pub msie6: bool,
    /// Safari on Mac OS.
    pub safari: bool,
}

impl Default for KeepaliveDisable {
    fn default() -> Self {
        Self {
            msie6: true,
            safari: false,
        }
    }
}

/// One `error_page`.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Status it is for.
    pub status: u16,
    /// Status to answer with: `None` keeps it, `Some(0)` takes that of the page.
    pub overwrite: Option<u16>,
    /// The URI or the URL of the page.
    pub uri: Value,
    /// Arguments of a constant URI.
    pub args: Vec<u8>,
    /// The position of the directive.
    pub at: Pos,
}

settings! {
    /// Settings of a location.
    pub struct CoreLoc: Location {
        /// Media type of files with an unknown extension.
        default_type "default_type": Text = Text(b"text/plain".to_vec()), "text/plain", HSL;
        /// Whether all access modules must allow a request or any of them.
        satisfy "satisfy": Satisfy = Satisfy::All, "all", HSL;
        /// Delay of an answer that requires credentials.
        auth_delay "auth_delay": Millis = Millis(0), "0s", HSL;
        /// Limit of the response rate in bytes per second; 0 for none.
        limit_rate "limit_rate": SizeValue = SizeValue(None), "0", HSLI;
        /// Bytes of a response that are sent before limit_rate applies.
        limit_rate_after "limit_rate_after": SizeValue = SizeValue(None), "0", HSLI;
        /// Whether missing files are logged.
        log_not_found "log_not_found": bool = true, "on", HSL;
        /// Whether subrequests are logged.
        log_subrequest "log_subrequest": bool = false, "off", HSL;
        /// The largest body of a subrequest in memory.
        subrequest_output_buffer_size "subrequest_output_buffer_size": Size = Size(4096), "4k", HSL;
        /// Maximum number of ranges of one request; 0 disables ranges.
        max_ranges "max_ranges": Number = Number(engines::http::UNLIMITED_RANGES), "unlimited", HSL;
        /// Whether bodies of unknown length are chunked in HTTP/1.1.
        chunked_transfer_encoding "chunked_transfer_encoding": bool = true, "on", HSL;
        /// Whether static files have an ETag.
        etag "etag": bool = true, "on", HSL;
        /// How If-Modified-Since is compared.
        if_modified_since "if_modified_since": IfModifiedSince = IfModifiedSince::Exact, "exact", HSL;
        /// Contents of the Server header and of error pages.
        server_tokens "server_tokens": ServerTokens = ServerTokens::On, "on", HSL;
        /// Whether reading a variable before it was set is logged.
        uninitialized_variable_warn "uninitialized_variable_warn": bool = true, "on", Contexts::HTTP_TO_IF.or(Contexts::IF_IN_SERVER);
    }
    extra {
        /// Settings of request bodies.
        bodies: RequestBodies = RequestBodies::merge,
        /// Settings of the connection that a response is sent over.
        connection: Connections = Connections::merge,
        /// Settings of files that are sent.
        files: StaticFiles = StaticFiles::merge,
        /// Settings of error pages.
        errors: ErrorPages = ErrorPages::merge,
        /// Settings of redirects.
        redirects: Redirects = Redirects::merge,
        /// `root` or `alias`; `None` until merged.
        root: Option<Root> = inherited,
        /// `types`.
        types: Option<Arc<ConfigMap<Vec<u8>, Vec<u8>>>>,
        /// `error_log` targets.
        error_logs: Option<SharedList<ErrorLogConf>> = inherited,
        /// The opened error log.
        opened_log: OnceLock<ErrorLog>,
        /// `internal`.
        internal: bool,
    }
    merge merge_extra;
}

settings! {
    /// Settings of request bodies.
    pub struct RequestBodies: CoreLoc.bodies {
        /// Largest request body; 0 for no limit.
        client_max_body_size "client_max_body_size": Offset = Offset(1 << 20), "1m", HSL;
        /// Size of the buffer for a request body.
        client_body_buffer_size "client_body_buffer_size": Size = Size(16 << 10), "8k|16k", HSL;
        /// Longest time between two reads of a request body.
        client_body_timeout "client_body_timeout": Millis = Millis(60_000), "60s", HSL;
        /// Longest time that a request body may take in all; 0 for no limit.
        client_body_deadline "client_body_deadline": Millis = Millis(0), "0", HSL;
        /// Lowest rate of a request body in bytes per second, 0 for none, and how far behind it a client may fall.
        client_body_min_rate "client_body_min_rate": BodyRate = BodyRate::default(), "0 grace=10s", HSL;
        /// Whether request bodies are always kept in files, and whether these stay after the request.
        client_body_in_file_only "client_body_in_file_only": InFile = InFile::Off, "off", HSL;
    }
    extra {
        /// `client_body_temp_path`.
        body_temp_path: Option<TempDir> = inherited,
    }
}

settings! {
    /// Settings of the connection that a response is sent over.
    pub struct Connections: CoreLoc.connection {
        /// Maximum number of bytes of one sendfile call; 0 is no limit.
        sendfile_max_chunk "sendfile_max_chunk": Size = Size(2 << 20), "2m", HSL;
        /// Whether head and file leave in full packets; they always do within one turn.
        tcp_nopush "tcp_nopush": bool = false, "off", HSL;
        /// Whether small segments are sent without waiting.
        tcp_nodelay "tcp_nodelay": bool = true, "on", HSL;
        /// Longest time between two writes of a response.
        send_timeout "send_timeout": Millis = Millis(60_000), "60s", HSL;
        /// Whether connections that time out, or are closed by the status 444, are reset.
        reset_timedout_connection "reset_timedout_connection": bool = false, "off", HSL;
        /// Longest life of a connection before it is closed after a response.
        keepalive_time "keepalive_time": Millis = Millis(3_600_000), "1h", HSL;
        /// Maximum number of requests of one connection.
        keepalive_requests "keepalive_requests": Number = Number(1000), "1000", HSL;
        /// How long an idle connection is kept at least when it is closed by the server for other reasons.
        keepalive_min_timeout "keepalive_min_timeout": Millis = Millis(0), "0", HSL;
        /// When to keep reading before a close.
        lingering_close "lingering_close": Lingering = Lingering::On, "on", HSL;
        /// Longest time to keep reading before a close.
        lingering_time "lingering_time": Millis = Millis(30_000), "30s", HSL;
        /// Longest wait for more to read before a close.
        lingering_timeout "lingering_timeout": Millis = Millis(5_000), "5s", HSL;
    }
    extra {
        /// `keepalive_timeout`: how long an idle connection is kept, milliseconds; 0 closes after each response.
        keepalive_ms: Option<u64> = inherited,
        /// Seconds of the field `Keep-Alive: timeout=`; 0 for no such field. Inherited for itself.
        keepalive_header: Option<u64> = inherited,
        /// `keepalive_disable`.
        keepalive_disable: Option<KeepaliveDisable> = inherited,
    }
}

settings! {
    /// Settings of error pages.
    pub struct ErrorPages: CoreLoc.errors {
        /// Whether an error page may itself lead to an error page.
        recursive_error_pages "recursive_error_pages": bool = false, "off", HSL;
        /// Whether error pages are made long enough for Internet Explorer and Chrome to show them.
        msie_padding "msie_padding": bool = true, "on", HSL;
    }
    extra {
        /// `error_page`; `None` if there is none.
        pages: Option<Arc<Vec<ErrorPage>>> = inherited,
    }
}

settings! {
    /// Settings of redirects.
    pub struct Redirects: CoreLoc.redirects {
        /// Whether redirects name scheme and host.
        absolute_redirect "absolute_redirect": bool = true, "on", HSL;
        /// Whether absolute redirects use the server's first name rather than the request's host.
        server_name_in_redirect "server_name_in_redirect": bool = false, "off", HSL;
        /// Whether absolute redirects name the port.
        port_in_redirect "port_in_redirect": bool = true, "on", HSL;
        /// Whether Internet Explorer is redirected by a page that refreshes itself.
        msie_refresh "msie_refresh": bool = false, "off", HSL;
    }
}

/// How URIs become paths.
#[derive(Clone, Debug)]
pub struct Root {
    /// The directory.
    pub path: Value,
    /// The part of the URI that `alias` replaces.
    pub alias: Option<Alias>,
}

/// The part of the URI that an `alias` replaces, by the location it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// This number of bytes at its beginning: the location's name.
    Prefix(usize),
    /// All of it: the location is a regular expression.
    Whole,
}

fn merge_extra(own: &mut CoreLoc, parent: Option<&CoreLoc>) {
    own.types = own.types.take().or_else(|| match parent {
        Some(parent) => parent.types.clone(),
        None => Some(Arc::new(default_types())),
    });
    own.internal |= parent.is_some_and(|p| p.internal);
}

fn default_types() -> ConfigMap<Vec<u8>, Vec<u8>> {
    [
        ("html", "text/html"),
        ("gif", "image/gif"),
        ("jpg", "image/jpeg"),
    ]
    .map(|(ext, kind)| (ext.as_bytes().to_vec(), kind.as_bytes().to_vec()))
    .into_iter()
    .collect()
}

impl CoreLoc {
    /// The location's error log.
    pub fn log(&self) -> &ErrorLog {
        self.opened_log.get_or_init(|| ErrorLog::new(Vec::new()))
    }

    /// Makes `default` the location's error log, unless it has its own; returns whether it did.
    pub fn share_log(&self, default: &ErrorLog) -> bool {
        let is_shared = self.error_logs.is_none();
        if is_shared {
            // Locations that share these settings have it from the first of them.
            let _ = self.opened_log.get_or_init(|| default.clone());
        }
        is_shared
    }

    /// Opens the location's own error log.
    pub fn open_log(&self, opened: &OpenedLogs) {
        let _ = self.opened_log.get_or_init(|| {
            let list = self.error_logs.as_deref();
            opened.error_log(list.unwrap_or_default())
        });
    }

    /// Makes the location's own error log follow the levels of that location in a newer configuration.
    pub fn follow_log(&self, newer: &Self) {
        let targets = |conf: &Self| -> Option<Vec<LogTarget>> {
            let list = conf.error_logs.as_ref()?;
            Some(list.iter().map(|log| log.target.clone()).collect())
        };
        let own = targets(self);
        if own.is_some() && own == targets(newer) {
            self.log().follow(newer.log());
        }
    }

    /// Whether a variable read before it was set is worth a line in the log.
    pub fn warn_uninitialized(&self) -> bool {
        *self.uninitialized_variable_warn
    }
}

impl RequestBodies {
    /// `client_body_temp_path`.
    ///
    /// # Panics
    /// Never: the `http` block has a default.
    pub fn body_temp_dir(&self) -> &TempDir {
        let dir = self.body_temp_path.as_ref();
        dir.expect("the http block has a directory, and all levels inherit it")
    }
}

impl Connections {
    /// `keepalive_timeout`.
    pub fn keepalive(&self) -> KeepaliveTimeout {
        KeepaliveTimeout {
            idle_ms: self.keepalive_ms.unwrap_or(DEFAULT_KEEPALIVE_MS),
            header_s: self.keepalive_header.filter(|s| *s > 0),
        }
    }
}

/// Default time that an idle connection is kept, milliseconds.
const DEFAULT_KEEPALIVE_MS: u64 = 75_000;
