//! Objects about the zones of `limit_conn` and `limit_req`.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Connections Limiting" and "HTTP Requests Rate Limiting".

use server_http::http::Http;

use super::error::ApiError;
use super::json::Json;
use crate::limit_conn::LimitConnMain;
use crate::limit_req::LimitReqMain;
use server_http::decision::LimitResult;

use crate::limits::LimitCounts;

/// A kind of zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    /// `limit_conn`.
    Conn,
    /// `limit_req`.
    Req,
}

impl LimitKind {
    /// Returns the object about a zone, or about all zones.
    ///
    /// # Errors
    /// There is no zone with this name.
    pub(super) fn get(self, http: &Http, name: Option<&[u8]>) -> Result<Json, ApiError> {
        if let Some(name) = name {
            return Ok(self.object(self.find(http, name)?));
        }
        let object = |(name, counts): (&[u8], &LimitCounts)| {
            let name = String::from_utf8_lossy(name).into_owned();
            (name, self.object(counts))
        };
        Ok(Json::Object(
            self.zones(http).into_iter().map(object).collect(),
        ))
    }

    /// Resets the counts of a zone.
    ///
    /// # Errors
    /// There is no zone with this name.
    pub(super) fn reset(self, http: &Http, name: &[u8]) -> Result<(), ApiError> {
        self.find(http, name)?.reset();
        Ok(())
    }

    fn find<'h>(self, http: &'h Http, name: &[u8]) -> Result<&'h LimitCounts, ApiError> {
        let mut zones = self.zones(http).into_iter();
        let found = zones.find(|(known, _)| *known == name);
        found.map(|(_, counts)| counts).ok_or_else(|| match self {
            Self::Conn => ApiError::new(404, "LimitConnNotFound", "limit_conn not found"),
            Self::Req => ApiError::new(404, "LimitReqNotFound", "limit_req not found"),
        })
    }

    fn zones(self, http: &Http) -> Vec<(&[u8], &LimitCounts)> {
        match self {
            Self::Conn => http.main::<LimitConnMain>().counts().collect(),
            Self::Req => http.main::<LimitReqMain>().counts().collect(),
        }
    }

    fn object(self, counts: &LimitCounts) -> Json {
        let mut object = Json::EMPTY;
        for (name, outcome) in self.outcomes() {
            object.push(name, counts.of(*outcome));
        }
        object
    }

    /// Returns the results of a zone, with the names of their members.
    fn outcomes(self) -> &'static [(&'static str, LimitResult)] {
        match self {
            Self::Conn => &[
                ("passed", LimitResult::Passed),
                ("rejected", LimitResult::Rejected),
                ("rejected_dry_run", LimitResult::RejectedDryRun),
            ],
            Self::Req => &[
                ("passed", LimitResult::Passed),
                ("delayed", LimitResult::Delayed),
                ("rejected", LimitResult::Rejected),
                ("delayed_dry_run", LimitResult::DelayedDryRun),
                ("rejected_dry_run", LimitResult::RejectedDryRun),
            ],
        }
    }
}
