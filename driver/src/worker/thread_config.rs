//! One thread's form of a configuration: settings of its engines for each port.
//!
//! The configuration knows directives and no engine; engines know settings and no directive. This file turns directives
//! into settings.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::Protocol;
use engines::{h1, h2, spdy};
use server_http::conf_core::{CoreSrv, Http2Srv, SpdySrv};
use server_http::http::{Http, LocalHttp, Port};
use server_http::settings_set::SettingsSet;

/// A configuration as one thread serves it.
pub struct ThreadConfig {
    /// The configuration, for exchanges.
    pub http: Rc<LocalHttp>,
    /// Settings of the HTTP/1 engine for each port.
    pub h1: Vec<Rc<h1::Settings>>,
    /// Settings of the protocols with streams for each port.
    pub mux: Vec<MuxSettings>,
}

/// Settings of the protocols with streams on one port.
pub struct MuxSettings {
    pub(super) h2: Rc<h2::Settings>,
    pub(super) spdy: Rc<spdy::Settings>,
    spdy_timeouts: Timeouts,
}

/// Timeouts that a protocol has of its own, in place of those of HTTP/1.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// How long a connection may have no request, milliseconds.
    pub idle_ms: u64,
    /// How long a frame that has begun may take to become whole, milliseconds.
    pub frame_ms: u64,
}

impl ThreadConfig {
    /// Prepares a configuration, the `number`th, for use by this thread.
    pub fn new(http: Arc<Http>, number: u64) -> Self {
        let mut config = Self::unprepared(http, number);
        config.prepare(&mut { usize::MAX });
        config
    }

    /// A configuration that is to be prepared ([`Self::prepare`]) before it is used.
    pub fn unprepared(http: Arc<Http>, number: u64) -> Self {
        let ports = http.ports.len();
        Self {
            h1: Vec::with_capacity(ports),
            mux: Vec::with_capacity(ports),
            http: Rc::new(LocalHttp::new(http, number)),
        }
    }

    /// Prepares ports, each for one of `steps`; all are prepared if some are left.
    pub fn prepare(&mut self, steps: &mut usize) {
        let http = &self.http.http;
        for port in http.ports.iter().skip(self.mux.len()) {
            if *steps == 0 {
                return;
            }
            *steps -= 1;
            self.h1.push(Rc::new(h1_settings(http, port)));
            self.mux.push(MuxSettings::new(http, port));
        }
    }

    /// Frees prepared settings, each port for one of `steps`; all are freed if some steps are left.
    pub fn release(&mut self, steps: &mut usize) {
        while *steps > 0 && self.mux.pop().is_some() {
            self.h1.pop();
            *steps -= 1;
        }
    }
}

impl MuxSettings {
    fn new(http: &Http, port: &Port) -> Self {
        let confs = &http.servers[port.addr(None).default_server].confs;
        let spdy: &SpdySrv = confs.get();
        Self {
            h2: Rc::new(h2_settings(confs)),
            spdy: Rc::new(spdy_settings(confs)),
            spdy_timeouts: Timeouts {
                idle_ms: spdy.keepalive_timeout.0,
                frame_ms: spdy.recv_timeout.0,
            },
        }
    }

    /// The timeouts of a protocol that has its own.
    pub(super) fn timeouts(&self, protocol: Protocol) -> Option<Timeouts> {
        (protocol == Protocol::Spdy).then_some(self.spdy_timeouts)
    }
}

impl Deref for ThreadConfig {
    type Target = Http;

    fn deref(&self) -> &Http {
        &self.http
    }
}

fn h1_settings(http: &Http, port: &Port) -> h1::Settings {
    let srv: &CoreSrv = http.servers[port.addr(None).default_server].confs.get();
    h1::Settings {
        header_buffer_bytes: srv.client_header_buffer_size.0 as usize,
        large_header_buffers: (
            srv.large_client_header_buffers.number,
            srv.large_client_header_buffers.size as usize,
        ),
        max_headers: srv.max_headers.0 as u32,
        ignore_invalid_headers: *srv.ignore_invalid_headers,
        underscores_in_headers: *srv.underscores_in_headers,
        allow_http09: *srv.http_0_9,
        ..h1::Settings::default()
    }
}

fn h2_settings(confs: &SettingsSet) -> h2::Settings {
    let (srv, own): (&CoreSrv, &Http2Srv) = (confs.get(), confs.get());
    let buffers = &srv.large_client_header_buffers;
    h2::Settings {
        max_concurrent_streams: own.max_concurrent_streams.0 as u32,
        max_concurrent_pushes: u32::try_from(own.max_concurrent_pushes.0).unwrap_or(u32::MAX),
        preread_bytes: own.body_preread_size.0 as u32,
        field_bytes: buffers.size as usize,
        header_bytes: buffers.size as usize * buffers.number as usize,
        max_headers: srv.max_headers.0 as u32,
        ignore_invalid_headers: *srv.ignore_invalid_headers,
        underscores_in_headers: *srv.underscores_in_headers,
        abuse_budget: own.abuse_budget.0 as u32,
        header_table_bytes: own.header_table_size.0 as usize,
        ..h2::Settings::default()
    }
}

fn spdy_settings(confs: &SettingsSet) -> spdy::Settings {
    let (srv, own): (&CoreSrv, &SpdySrv) = (confs.get(), confs.get());
    let buffers = &srv.large_client_header_buffers;
    spdy::Settings {
        max_concurrent_streams: own.max_concurrent_streams.0 as u32,
        headers_level: own.headers_comp.0,
        field_bytes: buffers.size as usize,
        header_bytes: buffers.size as usize * buffers.number as usize,
        max_headers: srv.max_headers.0 as u32,
        ignore_invalid_headers: *srv.ignore_invalid_headers,
        underscores_in_headers: *srv.underscores_in_headers,
        abuse_budget: confs.get::<Http2Srv>().abuse_budget.0 as u32,
        ..spdy::Settings::default()
    }
}
