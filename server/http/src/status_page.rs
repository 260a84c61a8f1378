//! The built-in pages of statuses, and the page of `msie_refresh`: nginx's bytes except the server's name, so that
//! programs that compare lengths or markup of error pages still work.
//!
//! Source: nginx documentation, directives `error_page`, `msie_padding`, `msie_refresh`; responses of nginx 1.31.4.

use engines::http::{Escape, escape, reason_phrase};

/// The built-in page of `status`, at its end the `server` name; `None` for a status without a page. `padded`:
/// longer than pages that browsers replace by their own.
pub(crate) fn status_page(status: u16, server: &str, padded: bool) -> Option<String> {
    let (shown, phrase) = match status {
        302 => (302, "Found"),
        401 => (401, "Authorization Required"),
        494..=497 => (400, "Bad Request"),
        498 => (404, "Not Found"),
        // These have a phrase, and in nginx no page.
        ..=300 | 304 | 425 => return None,
        _ => (status, reason_phrase(status)),
    };
    if phrase.is_empty() {
        return None;
    }
    let title = detail(status).unwrap_or(phrase);
    let detail = match detail(status) {
        Some(text) => ["<center>", text, "</center>\r\n"],
        None => [""; 3],
    };
    let digits = [100, 10, 1].map(|unit| b'0' + (shown / unit % 10) as u8);
    let shown = std::str::from_utf8(&digits).unwrap_or_default();
    // To concatenate costs a third of a format, and pages are sent in storms of errors.
    let mut page = [
        "<html>\r\n<head><title>",
        shown,
        " ",
        title,
        "</title></head>\r\n<body>\r\n<center><h1>",
        shown,
        " ",
        phrase,
        "</h1></center>\r\n",
        detail[0],
        detail[1],
        detail[2],
        "<hr><center>",
        server,
        "</center>\r\n</body>\r\n</html>\r\n",
    ]
    .concat();
    if padded {
        page.push_str(&PADDING_LINE.repeat(PADDING_LINES));
    }
    Some(page)
}

/// The cause named on the page of one of nginx's own statuses that clients see as 400.
const fn detail(status: u16) -> Option<&'static str> {
    Some(match status {
        494 => "Request Header Or Cookie Too Large",
        495 => "The SSL certificate error",
        496 => "No required SSL certificate was sent",
        497 => "The plain HTTP request was sent to HTTPS port",
        _ => return None,
    })
}

/// A page that makes a browser go to `location`.
pub(crate) fn refresh_page(location: &[u8]) -> Vec<u8> {
    let mut html = b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=".to_vec();
    escape(location, Escape::Refresh, &mut html);
    html.extend_from_slice(b"\"></head><body></body></html>\r\n");
    html
}

/// One line of the padding of `msie_padding`. Six of them make any page longer than 512 bytes, the size from which
/// on browsers show it.
const PADDING_LINE: &str = "<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n";
const PADDING_LINES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(status: u16) -> String {
        status_page(status, "name", false).unwrap_or_default()
    }

    #[test]
    fn pages_are_nginx_bytes() {
        assert_eq!(
            page(404),
            "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n\
             <center><h1>404 Not Found</h1></center>\r\n<hr><center>name</center>\r\n</body>\r\n</html>\r\n"
        );
        assert_eq!(page(498), page(404));
        assert!(page(302).contains("<title>302 Found</title>"));
        assert!(page(401).contains("<h1>401 Authorization Required</h1>"));
    }

    #[test]
    fn own_statuses_of_nginx_show_400_and_name_the_cause() {
        for (status, cause) in [
            (494, "Request Header Or Cookie Too Large"),
            (495, "The SSL certificate error"),
            (496, "No required SSL certificate was sent"),
            (497, "The plain HTTP request was sent to HTTPS port"),
        ] {
            assert_eq!(
                page(status),
                format!(
                    "<html>\r\n<head><title>400 {cause}</title></head>\r\n<body>\r\n\
                     <center><h1>400 Bad Request</h1></center>\r\n<center>{cause}</center>\r\n\
                     <hr><center>name</center>\r\n</body>\r\n</html>\r\n"
                )
            );
        }
    }

    #[test]
    fn the_statuses_with_a_page_are_nginx_s() {
        let with_page: Vec<u16> = (100..=599).filter(|&s| !page(s).is_empty()).collect();
        let expected = [301, 302, 303, 307, 308]
            .into_iter()
            .chain(400..=416)
            .chain([421, 429])
            .chain(494..=498)
            .chain(500..=505)
            .chain([507]);
        assert_eq!(with_page, expected.collect::<Vec<_>>());
    }

    #[test]
    fn padding_is_six_lines_behind_the_page() {
        let padded = status_page(404, "name", true).expect("a page");
        let padding = padded.strip_prefix(&page(404)).expect("the page first");
        assert_eq!((padding.lines().count(), padding.len()), (6, 6 * 67));
    }
}
