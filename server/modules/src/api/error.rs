//! Errors of the API: a status, a text, and nginx's code.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "nginx error object".

use super::json::Json;

/// An error, which becomes the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: u16,
    code: &'static str,
    text: String,
}

impl ApiError {
    /// Makes an error.
    pub(super) fn new(status: u16, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            status,
            code,
            text: text.into(),
        }
    }

    /// The path is none of the API.
    pub(super) fn path_not_found() -> Self {
        Self::new(404, "PathNotFound", "path not found")
    }

    /// The version in the path is not supported.
    pub(super) fn unknown_version() -> Self {
        Self::new(404, "UnknownVersion", "unknown version")
    }

    /// The path has no such method, or the API is read-only.
    pub(super) fn method_disabled() -> Self {
        Self::new(405, "MethodDisabled", "method disabled")
    }

    /// Returns the body of the response. Versions before 4 have two more members, which are empty.
    pub(super) fn body(&self, version: u64, request_id: &str) -> Json {
        let error = Json::object([
            ("status", u64::from(self.status).into()),
            ("text", self.text.as_str().into()),
            ("code", self.code.into()),
        ]);
        let mut body = Json::EMPTY;
        if version < 4 {
            body.push("path", "");
            body.push("method", "");
        }
        body.push("error", error);
        body.push("request_id", request_id);
        body.push("href", HREF);
        body
    }
}

/// `href` of errors: the documentation.
const HREF: &str = "https://nginx.org/en/docs/http/ngx_http_api_module.html";
