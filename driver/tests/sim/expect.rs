//! Checks that a response matches its request.

use super::response::{Framed, Response};
use super::script::{Expected, Request};
use super::site::{CONFS, Conf, FILES, Site, stored};

/// Circumstances in which a response was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// Number of requests on the connection, including this one.
    pub(crate) count: usize,
    /// Whether the response may, or must, be the last one for a reason besides the request.
    pub(crate) may_end: bool,
    pub(crate) must_end: bool,
}

/// Compares a response with the expected ones of several configurations. One of them must match.
///
/// # Errors
/// A description of the error for the last configuration.
pub(crate) fn check(
    response: &Response,
    request: &Request,
    confs: &[usize],
    around: Circumstances,
    site: &Site,
) -> Result<(), String> {
    let mut result = Err("no configuration is in force".to_owned());
    for conf in confs {
        result = check_one(response, request, &CONFS[*conf], around, site);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn check_one(
    response: &Response,
    request: &Request,
    conf: &Conf,
    around: Circumstances,
    site: &Site,
) -> Result<(), String> {
    if request.version == 9 {
        let body = whole_body(&request.want, conf, site);
        return same(
            "the body of an HTTP/0.9 response",
            &response.body,
            &body.unwrap_or_default(),
        );
    }
    if response.interim > usize::from(request.expects) {
        return Err("an interim response that was not asked for".to_owned());
    }
    check_connection(response, request, conf, around)?;
    match &request.want {
        Expected::BrokenBody if response.status == 400 => check_page(response, request, 400),
        Expected::Page(status) | Expected::Refused(status) => {
            check_page(response, request, *status)
        }
        Expected::Moved(path) => {
            check_page(response, request, 301)?;
            let location = response.field("Location").unwrap_or_default();
            let known = ["8001", "8002"]
                .iter()
                .any(|port| location == format!("http://a.test:{port}{path}"));
            if known {
                Ok(())
            } else {
                Err(format!("Location {location:?} for {path}"))
            }
        }
        Expected::Bare(status) => check_status(response, *status),
        Expected::Parts(file, parts) => check_parts(response, request, *file, parts, site),
        Expected::Drop => Err("a response where the connection was to be closed".to_owned()),
        want => {
            let body = whole_body(want, conf, site).unwrap_or_default();
            let part = match want {
                Expected::Part(file, range) => {
                    let value =
                        format!("bytes {}-{}/{}", range.start, range.end - 1, FILES[*file].1);
                    check_field(response, "Content-Range", &value)?;
                    true
                }
                _ => false,
            };
            check_status(response, if part { 206 } else { 200 })?;
            let trailer =
                matches!(want, Expected::Trailer | Expected::ChunkedFile(_)) && !request.is_head;
            check_body(response, request, &body, trailer && request.version == 11)
        }
    }
}

/// Returns the expected body if it is in one piece.
pub(crate) fn whole_body(want: &Expected, conf: &Conf, site: &Site) -> Option<Vec<u8>> {
    match want {
        Expected::File(n) | Expected::ChunkedFile(n) => Some(site.files[*n].clone()),
        Expected::Part(n, range) => Some(site.files[*n][range.clone()].to_vec()),
        Expected::Text | Expected::Trailer | Expected::BrokenBody => Some(conf.text().into_bytes()),
        Expected::Stored(len) => Some(stored(&vec![b'b'; *len])),
        _ => None,
    }
}

fn check_connection(
    response: &Response,
    request: &Request,
    conf: &Conf,
    around: Circumstances,
) -> Result<(), String> {
    let must = request.last
        || around.must_end
        || around.count >= conf.requests
        || matches!(request.want, Expected::Refused(_))
        || response.status == 400;
    match response.field("Connection") {
        Some("close") if must || around.may_end => Ok(()),
        Some("keep-alive") if !must => Ok(()),
        other => Err(format!(
            "Connection is {other:?}, with request {}: {around:?}",
            around.count
        )),
    }
}

fn check_status(response: &Response, status: u16) -> Result<(), String> {
    if response.status == status {
        Ok(())
    } else {
        Err(format!("status {}, not {status}", response.status))
    }
}

fn check_field(response: &Response, name: &str, value: &str) -> Result<(), String> {
    let found = response.field(name);
    if found == Some(value) {
        Ok(())
    } else {
        Err(format!("{name} is {found:?}, not {value:?}"))
    }
}

fn check_body(
    response: &Response,
    request: &Request,
    body: &[u8],
    trailer: bool,
) -> Result<(), String> {
    let framed = match (request.is_head, trailer) {
        (true, _) => Framed::Bodiless,
        (false, true) => Framed::Chunked,
        (false, false) => Framed::Length,
    };
    if response.framed != framed {
        return Err(format!("framed by {:?}, not {framed:?}", response.framed));
    }
    match framed {
        Framed::Chunked => {
            let known = [("X-Sum", true)]
                .iter()
                .all(|(n, _)| response.trailers.iter().any(|(t, _)| t == n));
            if !known || response.trailers.len() != 1 {
                return Err(format!("trailers {:?}", response.trailers));
            }
        }
        _ => check_field(response, "Content-Length", &body.len().to_string())?,
    }
    if request.is_head {
        return Ok(());
    }
    same("the body", &response.body, body)
}

fn check_page(response: &Response, request: &Request, status: u16) -> Result<(), String> {
    check_status(response, status)?;
    if request.is_head {
        return if response.framed == Framed::Bodiless {
            Ok(())
        } else {
            Err("a body for HEAD".to_owned())
        };
    }
    let text = String::from_utf8_lossy(&response.body);
    let whole = text.contains(&format!("<h1>{status} ")) && text.ends_with("</html>\r\n");
    if whole && response.framed == Framed::Length {
        Ok(())
    } else {
        Err(format!("the page of {status} is {text:?}"))
    }
}

fn check_parts(
    response: &Response,
    request: &Request,
    file: usize,
    parts: &[std::ops::Range<usize>],
    site: &Site,
) -> Result<(), String> {
    check_status(response, 206)?;
    let kind = response.field("Content-Type").unwrap_or_default();
    let Some(boundary) = kind.strip_prefix("multipart/byteranges; boundary=") else {
        return Err(format!("the parts are {kind:?}"));
    };
    let size = FILES[file].1;
    let mut body = Vec::new();
    for part in parts {
        let range = format!(
            "Content-Range: bytes {}-{}/{size}",
            part.start,
            part.end - 1
        );
        let kind = if FILES[file].0.ends_with(".html") {
            "text/html"
        } else {
            "application/octet-stream"
        };
        let head = format!("\r\n--{boundary}\r\nContent-Type: {kind}\r\n{range}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&site.files[file][part.clone()]);
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    check_body(response, request, &body, false)
}

fn same(what: &str, found: &[u8], wanted: &[u8]) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    let at = found.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    Err(format!(
        "{what} differs from byte {at} on; it has {} bytes, wanted are {}",
        found.len(),
        wanted.len()
    ))
}
