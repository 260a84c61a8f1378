//! Parameters of a server in the body of a request: read whole, and checked before anything changes.
//!
//! Absent: parameters that only the new address of a server has, which are checked with it.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Upstream Server".

use serde_json::Value;
use server_upstream::server::check_service;

use super::error::ApiError;

/// Parameters of a request; `None`: absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerParams {
    pub(super) server: Option<String>,
    pub(super) service: Option<String>,
    pub(super) weight: Option<i64>,
    pub(super) max_conns: Option<u64>,
    pub(super) max_fails: Option<u64>,
    pub(super) fail_timeout_s: Option<u64>,
    pub(super) slow_start_ms: Option<u64>,
    pub(super) route: Option<String>,
    pub(super) is_backup: Option<bool>,
    pub(super) is_down: Option<bool>,
    pub(super) is_draining: Option<bool>,
}

impl ServerParams {
    /// Reads a body. `is_new`: the request adds a server, so that parameters are allowed that cannot be changed later.
    ///
    /// # Errors
    /// The body is no JSON object, or a parameter is unknown or has no valid value.
    pub(super) fn parse(body: &[u8], version: u64, is_new: bool) -> Result<Self, ApiError> {
        let json = || ApiError::new(415, "JsonError", "json error");
        let Value::Object(members) = serde_json::from_slice(body).map_err(|_| json())? else {
            return Err(json());
        };
        let mut params = Self::default();
        for (name, value) in &members {
            if value.is_object() || value.is_array() {
                return Err(format_error("nested object or list"));
            }
            params.read(name, value, version, is_new)?;
        }
        Ok(params)
    }

    fn read(
        &mut self,
        name: &str,
        value: &Value,
        version: u64,
        is_new: bool,
    ) -> Result<(), ApiError> {
        match name {
            "server" => self.server = Some(text(name, value)?),
            "service" if is_new => self.service = Some(service(text(name, value)?)?),
            "weight" => {
                let weight = number(name, value, "UpstreamBadWeight")?;
                let weight = i64::try_from(weight).ok().filter(|weight| *weight > 0);
                self.weight = Some(weight.ok_or_else(|| range(name, "UpstreamBadWeight"))?);
            }
            "max_conns" => self.max_conns = Some(number(name, value, "UpstreamBadMaxConns")?),
            "max_fails" => self.max_fails = Some(number(name, value, "UpstreamBadMaxFails")?),
            "fail_timeout" => {
                let parse = conf::parse_time_s;
                self.fail_timeout_s = Some(time(name, value, parse, "UpstreamBadFailTimeout")?);
            }
            "slow_start" => {
                let parse = conf::parse_time_ms;
                self.slow_start_ms = Some(time(name, value, parse, "UpstreamBadSlowStart")?);
            }
            "route" => self.route = Some(route(text(name, value)?)?),
            "backup" if is_new => self.is_backup = Some(boolean(name, value)?),
            "down" => self.is_down = Some(boolean(name, value)?),
            "drain" if version >= DRAIN_SINCE => self.is_draining = Some(boolean(name, value)?),
            _ => return Err(format_error(format!("unknown parameter \"{name}\""))),
        }
        Ok(())
    }
}

/// The error for a body without a valid form.
pub(super) fn format_error(text: impl Into<String>) -> ApiError {
    ApiError::new(400, "UpstreamConfFormatError", text)
}

/// The error for a value of a wrong type.
fn invalid(name: &str) -> ApiError {
    format_error(format!("invalid \"{name}\" value"))
}

/// The error for a value out of its range.
fn range(name: &str, code: &'static str) -> ApiError {
    ApiError::new(400, code, format!("invalid \"{name}\""))
}

fn text(name: &str, value: &Value) -> Result<String, ApiError> {
    let text = value.as_str().ok_or_else(|| invalid(name))?;
    Ok(text.to_owned())
}

fn boolean(name: &str, value: &Value) -> Result<bool, ApiError> {
    value.as_bool().ok_or_else(|| invalid(name))
}

fn number(name: &str, value: &Value, code: &'static str) -> Result<u64, ApiError> {
    if !value.is_number() {
        return Err(invalid(name));
    }
    let number = value.as_u64().filter(|number| *number <= NUMBER_MAX);
    number.ok_or_else(|| range(name, code))
}

/// Reads a time: a text as in the configuration, or a number of seconds.
fn time(
    name: &str,
    value: &Value,
    parse: fn(&[u8]) -> Option<u64>,
    code: &'static str,
) -> Result<u64, ApiError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(seconds) => seconds.to_string(),
        _ => return Err(invalid(name)),
    };
    parse(text.as_bytes()).ok_or_else(|| range(name, code))
}

fn route(route: String) -> Result<String, ApiError> {
    match route.len() > ROUTE_MAX_BYTES {
        true => Err(ApiError::new(400, "UpstreamBadRoute", "route is too long")),
        false => Ok(route),
    }
}

fn service(service: String) -> Result<String, ApiError> {
    let wrong = |text: &str| Err(ApiError::new(400, "UpstreamBadService", text));
    match check_service(&service) {
        Err(why) => wrong(why),
        Ok(()) if service.is_empty() => wrong("\"service\" is empty"),
        Ok(()) => Ok(service),
    }
}

/// First version with `drain`.
const DRAIN_SINCE: u64 = 2;
/// Largest number of a parameter, as in the configuration.
const NUMBER_MAX: u64 = i64::MAX as u64;
/// Longest `route`.
const ROUTE_MAX_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use server_upstream::server::LABEL_BYTES;

    use super::*;

    fn parse(body: &str) -> Result<ServerParams, ApiError> {
        ServerParams::parse(body.as_bytes(), 9, true)
    }

    #[test]
    fn all_parameters_are_read() {
        let body = "{\"server\":\"a:1\",\"service\":\"http\",\"weight\":5,\"max_conns\":6,\"max_fails\":0,
            \"fail_timeout\":\"1m\",\"slow_start\":1,\"route\":\"r\",\"backup\":true,\"down\":false,\"drain\":true}";
        let params = ServerParams {
            server: Some("a:1".to_owned()),
            service: Some("http".to_owned()),
            weight: Some(5),
            max_conns: Some(6),
            max_fails: Some(0),
            fail_timeout_s: Some(60),
            slow_start_ms: Some(1000),
            route: Some("r".to_owned()),
            is_backup: Some(true),
            is_down: Some(false),
            is_draining: Some(true),
        };
        assert_eq!(parse(body), Ok(params));
        assert_eq!(parse("{}"), Ok(ServerParams::default()));
    }

    /// Bodies with the code and the text of their errors.
    const WRONG: &[(&str, &str, &str)] = &[
        ("", "JsonError", "json error"),
        ("[]", "JsonError", "json error"),
        ("{\"weight\":1", "JsonError", "json error"),
        ("{\"weight\":1}x", "JsonError", "json error"),
        (
            "{\"weight\":\"1\"}",
            "UpstreamConfFormatError",
            "invalid \"weight\" value",
        ),
        (
            "{\"server\":1}",
            "UpstreamConfFormatError",
            "invalid \"server\" value",
        ),
        (
            "{\"down\":1}",
            "UpstreamConfFormatError",
            "invalid \"down\" value",
        ),
        (
            "{\"fail_timeout\":true}",
            "UpstreamConfFormatError",
            "invalid \"fail_timeout\" value",
        ),
        (
            "{\"down\":[true]}",
            "UpstreamConfFormatError",
            "nested object or list",
        ),
        (
            "{\"id\":1}",
            "UpstreamConfFormatError",
            "unknown parameter \"id\"",
        ),
        ("{\"weight\":0}", "UpstreamBadWeight", "invalid \"weight\""),
        ("{\"weight\":-1}", "UpstreamBadWeight", "invalid \"weight\""),
        (
            "{\"weight\":1.5}",
            "UpstreamBadWeight",
            "invalid \"weight\"",
        ),
        (
            "{\"max_conns\":9223372036854775808}",
            "UpstreamBadMaxConns",
            "invalid \"max_conns\"",
        ),
        (
            "{\"max_fails\":-1}",
            "UpstreamBadMaxFails",
            "invalid \"max_fails\"",
        ),
        (
            "{\"fail_timeout\":\"1x\"}",
            "UpstreamBadFailTimeout",
            "invalid \"fail_timeout\"",
        ),
        (
            "{\"slow_start\":-1}",
            "UpstreamBadSlowStart",
            "invalid \"slow_start\"",
        ),
        (
            "{\"service\":\"\"}",
            "UpstreamBadService",
            "\"service\" is empty",
        ),
    ];

    #[test]
    fn values_have_their_types_and_ranges() {
        for (body, code, text) in WRONG {
            let status = if *code == "JsonError" { 415 } else { 400 };
            assert_eq!(
                parse(body),
                Err(ApiError::new(status, code, *text)),
                "{body}"
            );
        }
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(parse("{\"max_conns\":9223372036854775807}").is_ok());
        assert!(parse("{\"weight\":1}").is_ok());
        let route = |bytes: usize| parse(&format!("{{\"route\":\"{}\"}}", "r".repeat(bytes)));
        assert!(route(ROUTE_MAX_BYTES - 1).is_ok() && route(ROUTE_MAX_BYTES).is_ok());
        let service = |bytes: usize| parse(&format!("{{\"service\":\"{}\"}}", "s".repeat(bytes)));
        assert!(service(LABEL_BYTES - 1).is_ok() && service(LABEL_BYTES).is_ok());
        let error = ApiError::new(400, "UpstreamBadService", "service is too long");
        assert_eq!(service(LABEL_BYTES + 1), Err(error));
        let error = ApiError::new(400, "UpstreamBadRoute", "route is too long");
        assert_eq!(route(ROUTE_MAX_BYTES + 1), Err(error));
    }

    #[test]
    fn a_change_has_fewer_parameters() {
        for name in ["backup", "service"] {
            let body = format!("{{\"{name}\":true}}");
            let text = format!("unknown parameter \"{name}\"");
            let changed = ServerParams::parse(body.as_bytes(), 9, false);
            assert_eq!(changed, Err(format_error(text)));
        }
        let drain = |version| ServerParams::parse(b"{\"drain\":true}", version, false);
        assert_eq!(drain(1), Err(format_error("unknown parameter \"drain\"")));
        assert!(drain(2).is_ok());
    }
}
