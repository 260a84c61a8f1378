//! Header fields of requests and responses, as the browser reports them.

use serde_json::Value;

use super::events::Headers;

/// Converts an object of the protocol to fields in its order. Pseudo fields of HTTP/2 are skipped, and so are fields
/// past [`FIELDS_BYTES_MAX`] bytes.
pub(super) fn of_object(headers: &Headers) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let values = headers.iter().map(|(name, value)| (name, text(value)));
    let named = values.filter(|(name, _)| !name.starts_with(':'));
    bounded(named.flat_map(|(name, value)| {
        let lines: Vec<_> = value.split('\n').map(str::to_owned).collect();
        lines.into_iter().map(|line| (name.clone(), line))
    }))
}

/// Parses the fields of an HTTP/1 response head.
pub(super) fn of_text(head: &str) -> Vec<(String, String)> {
    let lines = head
        .split('\n')
        .skip(1)
        .map(|line| line.trim_end_matches('\r'));
    let pairs = lines.filter_map(|line| line.split_once(':'));
    bounded(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
}

fn bounded(fields: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut left = FIELDS_BYTES_MAX;
    let fits = |(name, value): &(String, String)| {
        let bytes = name.len() + value.len();
        let fits = bytes <= left;
        left = if fits { left - bytes } else { 0 };
        fits
    };
    fields.take_while(fits).collect()
}

/// Limit of the kept fields of one head, bytes: twice the limit of Chromium for an HTTP/1 response.
pub(super) const FIELDS_BYTES_MAX: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        expected.iter().map(owned).collect()
    }

    #[test]
    fn repeated_fields_are_parted() {
        let object = json!({":status": "200", "a": "1", "set-cookie": "x=1\ny=2", "n": 5});
        let fields = of_object(object.as_object().expect("an object"));
        let expected = [
            ("a", "1"),
            ("n", ""),
            ("set-cookie", "x=1"),
            ("set-cookie", "y=2"),
        ];
        assert_eq!(fields, pairs(&expected));
    }

    #[test]
    fn head_of_http1_keeps_its_order() {
        let head = "HTTP/1.1 200 OK\r\nB: 1\r\nA:2 \r\nno field\r\nB: http://h/\r\n\r\n";
        let expected = [("B", "1"), ("A", "2"), ("B", "http://h/")];
        assert_eq!(of_text(head), pairs(&expected));
    }

    #[test]
    fn heads_are_kept_up_to_a_limit() {
        let head = |bytes: usize| format!("H\r\na:{}\r\nb:2\r\n", "x".repeat(bytes));
        assert_eq!(of_text(&head(FIELDS_BYTES_MAX - 3)).len(), 2);
        assert_eq!(of_text(&head(FIELDS_BYTES_MAX - 2)).len(), 1);
        assert!(of_text(&head(FIELDS_BYTES_MAX)).is_empty());
    }
}
