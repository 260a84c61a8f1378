//! Commands in a report, to be copied into a shell.

use crate::client::Url;

/// A URL's server as `openssl s_client` takes it: host and port, and the name.
pub(super) fn server_name(url: &Url) -> (String, String) {
    let host = match url.host.contains(':') {
        true => format!("[{}]", url.host),
        false => url.host.clone(),
    };
    let server = format!("{host}:{}", url.port);
    (quoted(&server), quoted(&url.host))
}

/// Returns a word for a POSIX shell, quoted if necessary.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:%@,+=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_brackets_before_their_port() {
        let url = |text| Url::parse(text).expect("a URL");
        let expected = ("'[::1]:443'".to_owned(), "::1".to_owned());
        assert_eq!(server_name(&url("https://[::1]/")), expected);
        assert_eq!(server_name(&url("https://h:8443/")).0, "h:8443");
    }

    #[test]
    fn no_word_leaves_its_quotes() {
        assert_eq!(quoted("http://h:81/a.b"), "http://h:81/a.b");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("http://h/?a&b"), "'http://h/?a&b'");
        assert_eq!(quoted("a'; rm b; '"), "'a'\\''; rm b; '\\'''");
    }
}
