//! The listing as a page: a line for each entry, in columns.

use engines::http::{Civil, Escape, civil, escape, escape_html};
use server_base::clock::MONTHS;

use super::{Entry, EntryKind};

/// Display options of the page.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Names are counted in characters, not bytes.
    pub(super) utf8: bool,
    pub(super) exact_size: bool,
    /// Offset of times from UTC, seconds.
    pub(super) offset_s: i64,
}

pub(super) fn html(uri: &[u8], entries: &[Entry], style: Style) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + entries.len() * LINE_BYTES);
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    escape_html(uri, &mut out);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    escape_html(uri, &mut out);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    for entry in entries {
        line(entry, style, &mut out);
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
    out
}

fn line(entry: &Entry, style: Style, out: &mut Vec<u8>) {
    let directory = entry.kind == EntryKind::Directory;
    out.extend_from_slice(b"<a href=\"");
    escape(&entry.name, Escape::UriComponent, out);
    if directory {
        out.push(b'/');
    }
    out.extend_from_slice(b"\">");
    let text = std::str::from_utf8(&entry.name).ok().filter(|_| style.utf8);
    let mut width = text.map_or(entry.name.len(), |text| text.chars().count());
    if width > NAME_WIDTH {
        let kept = NAME_WIDTH - 3;
        let end = text.map_or(kept, |text| {
            let rest = text.char_indices().nth(kept);
            rest.map_or(text.len(), |(at, _)| at)
        });
        escape_html(&entry.name[..end], out);
        out.extend_from_slice(b"..&gt;</a>");
    } else {
        escape_html(&entry.name, out);
        if directory && width < NAME_WIDTH {
            out.push(b'/');
            width += 1;
        }
        out.extend_from_slice(b"</a>");
        out.resize(out.len() + NAME_WIDTH - width, b' ');
    }
    let time = time(entry.modified_s + style.offset_s);
    let size = size(entry, style.exact_size);
    out.extend_from_slice(format!(" {time} {size}\r\n").as_bytes());
}

fn time(unix_s: i64) -> String {
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = civil(unix_s);
    let month = MONTHS[usize::from(month) - 1];
    format!("{day:02}-{month}-{year} {hour:02}:{minute:02}")
}

fn size(entry: &Entry, exact: bool) -> String {
    let directory = entry.kind == EntryKind::Directory;
    match (exact, directory) {
        (true, true) => format!("{:>19}", '-'),
        (true, false) => format!("{:>19}", entry.size),
        (false, true) => format!("{:>7}", '-'),
        (false, false) => rounded(entry.size),
    }
}

/// A size in seven columns, rounded to whole units.
fn rounded(size: u64) -> String {
    let (unit, letter) = match size {
        0..=9999 => return format!("{size:>7}"),
        10_000..=0xF_FFFF => (1 << 10, 'K'),
        0x10_0000..=0x3FFF_FFFF => (1 << 20, 'M'),
        _ => (1 << 30, 'G'),
    };
    let up = u64::from(size % unit >= unit / 2);
    format!("{:>6}{letter}", size / unit + up)
}

/// Columns of a name.
const NAME_WIDTH: usize = 50;
/// Minimum length of a line, bytes.
const LINE_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style {
        utf8: false,
        exact_size: true,
        offset_s: 0,
    };

    fn shown(name: &str, kind: EntryKind, size: u64, style: Style) -> String {
        let entry = Entry {
            name: name.as_bytes().to_vec(),
            kind,
            modified_s: 784_111_777,
            size,
        };
        let mut out = Vec::new();
        line(&entry, style, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_line_has_columns() {
        let spaces = " ".repeat(46);
        assert_eq!(
            shown("a&<b", EntryKind::File, 5, PLAIN),
            format!(
                "<a href=\"a%26%3Cb\">a&amp;&lt;b</a>{spaces} 06-Nov-1994 08:49                   5\r\n"
            )
        );
        let spaces = " ".repeat(48);
        assert_eq!(
            shown("d", EntryKind::Directory, 5, PLAIN),
            format!("<a href=\"d/\">d/</a>{spaces} 06-Nov-1994 08:49                   -\r\n")
        );
    }

    #[test]
    fn a_long_name_is_cut() {
        let fits = "n".repeat(50);
        assert!(shown(&fits, EntryKind::File, 0, PLAIN).contains(&format!(">{fits}</a> 06")));
        assert!(shown(&fits, EntryKind::Directory, 0, PLAIN).contains(&format!(">{fits}</a> 06")));
        let cut = format!(">{}..&gt;</a> 06", "n".repeat(47));
        assert!(shown(&"n".repeat(51), EntryKind::File, 0, PLAIN).contains(&cut));
        let utf8 = Style {
            utf8: true,
            ..PLAIN
        };
        let fits = "é".repeat(50);
        assert!(shown(&fits, EntryKind::File, 0, utf8).contains(&format!(">{fits}</a> 06")));
        let cut = format!(">{}..&gt;</a> 06", "é".repeat(47));
        assert!(shown(&"é".repeat(51), EntryKind::File, 0, utf8).contains(&cut));
    }

    #[test]
    fn sizes_are_rounded() {
        for (size, shown) in [
            (9999, "   9999"),
            (10_000, "    10K"),
            (10_751, "    10K"),
            (10_752, "    11K"),
            (1 << 20, "     1M"),
            ((1 << 30) - 1, "  1024M"),
            (3 << 29, "     2G"),
        ] {
            assert_eq!(rounded(size), shown);
        }
    }
}
