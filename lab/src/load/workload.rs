//! The requests of a run that come from a file, or from an access log.
//!
//! Source: docs/lab.md.

use std::path::Path;

use sys::os_error;

use crate::client::{Request, Url, has_body};

/// The requests of a file: on each line a method and a path, or a path alone; `#` begins a comment.
///
/// # Errors
/// The file cannot be read, has no request, or a line is none.
pub fn of_file(
    file: &Path,
    server: &Url,
    fields: &[(String, String)],
    body: &[u8],
) -> Result<Vec<Request>, String> {
    let text = read(file)?;
    let mut requests = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (method, path) = match line.split_once(char::is_whitespace) {
            Some((method, path)) => (method, path.trim_start()),
            None => ("GET", line),
        };
        if !is_request(method, path) {
            let file = file.display();
            return Err(format!("{file}:{}: \"{line}\" is no request", n + 1));
        }
        let body = if has_body(method) { body } else { &[] };
        requests.push(Request::new(server, method, path, fields, body));
    }
    some(requests, file)
}

/// The requests of an access log in nginx's format `combined`, or any other with the request line in quotes: GET and HEAD in
/// their order. Returns the number of the other lines, too: no log has the bodies of their requests.
///
/// # Errors
/// The file cannot be read, or has no such request.
pub fn of_log(
    file: &Path,
    server: &Url,
    fields: &[(String, String)],
) -> Result<(Vec<Request>, usize), String> {
    let text = read(file)?;
    let requests = text
        .lines()
        .filter_map(|line| line.split('"').find_map(request_line))
        .map(|(method, path)| Request::new(server, method, path, fields, &[]));
    let requests = some(requests.collect(), file)?;
    let others = text.lines().count() - requests.len();
    Ok((requests, others))
}

/// `GET /path HTTP/1.1` as method and path.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let mut words = text.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let whole = version.starts_with("HTTP/") || version.starts_with("SPDY/");
    let fits = matches!(method, "GET" | "HEAD") && is_request(method, path);
    (fits && whole && words.next().is_none()).then_some((method, path))
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file)
        .map_err(|error| format!("cannot read {}: {}", file.display(), os_error(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn some(requests: Vec<Request>, file: &Path) -> Result<Vec<Request>, String> {
    match requests.is_empty() {
        true => Err(format!("{} has no request", file.display())),
        false => Ok(requests),
    }
}

fn is_request(method: &str, path: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
    let visible = |byte: u8| byte > b' ' && byte != 0x7f;
    !method.is_empty()
        && method.bytes().all(token)
        && path.starts_with('/')
        && path.bytes().all(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_give_what_can_be_asked_again() {
        let line = |text: &str| text.split('"').find_map(request_line).is_some();
        assert!(line(
            r#"1.2.3.4 - - [x] "GET /a?b HTTP/2.0" 200 5 "-" "curl""#
        ));
        assert!(!line(r#"1.2.3.4 - - [x] "POST /a HTTP/1.1" 200 5"#));
        assert!(!line(r#"1.2.3.4 - - [x] "\x16\x03" 400 5"#));
    }
}
