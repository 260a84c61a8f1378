//! File types by suffix: language, media type, whether compression pays.
//!
//! Absent: the content of files. A page with the suffix of another type is served as that type, too.

/// Language of a file's references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// HTML as browsers read it.
    Html,
    /// SVG.
    Svg,
    /// CSS.
    Css,
    /// JavaScript, classic or module.
    Js,
    /// JSON that scripts read.
    Data,
    /// A web app manifest.
    AppManifest,
    /// A source map.
    SourceMap,
    /// Feeds, maps of the site and other XML: read as words.
    Xml,
    /// An unknown type.
    Opaque,
}

/// File type, known from the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileType {
    /// Language by which it is read.
    pub(super) language: Language,
    /// Its media type.
    pub(super) media_type: &'static str,
    /// Whether it is worth compressing.
    pub(super) compressible: bool,
}

impl FileType {
    /// The kind of a file with this name, without directories.
    pub(super) fn of(name: &str) -> Self {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let extension = extension.to_ascii_lowercase();
        let row = KINDS
            .iter()
            .find(|(names, ..)| names.contains(&extension.as_str()));
        let mut kind = row.map_or(OTHER, |(_, language, media_type, compressible)| Self {
            language: *language,
            media_type,
            compressible: *compressible,
        });
        if name == "manifest.json" {
            kind.language = Language::AppManifest;
            kind.media_type = "application/manifest+json";
        }
        kind
    }

    /// Returns whether it is a page, or a file requested by name like a page.
    pub(super) fn is_page(self) -> bool {
        use Language::{AppManifest, Html, Xml};
        matches!(self.language, Html | Xml | AppManifest)
    }
}

const OTHER: FileType = FileType {
    language: Language::Opaque,
    media_type: "application/octet-stream",
    compressible: false,
};

type Row = (&'static [&'static str], Language, &'static str, bool);

const KINDS: &[Row] = {
    use Language::{AppManifest, Css, Data, Html, Js, Opaque, SourceMap, Svg, Xml};
    &[
        (&["html", "htm", "shtml"], Html, "text/html", true),
        (&["xhtml", "xht"], Html, "application/xhtml+xml", true),
        (&["css"], Css, "text/css", true),
        (&["js", "mjs", "cjs"], Js, "text/javascript", true),
        (&["json", "geojson"], Data, "application/json", true),
        (
            &["webmanifest"],
            AppManifest,
            "application/manifest+json",
            true,
        ),
        (&["map"], SourceMap, "application/json", true),
        (&["svg"], Svg, "image/svg+xml", true),
        (&["xml", "xsl", "xslt"], Xml, "text/xml", true),
        (&["rss"], Xml, "application/rss+xml", true),
        (&["atom"], Xml, "application/atom+xml", true),
        (&["txt"], Opaque, "text/plain", true),
        (&["md"], Opaque, "text/markdown", true),
        (&["csv"], Opaque, "text/csv", true),
        (&["vtt"], Opaque, "text/vtt", true),
        (&["wasm"], Opaque, "application/wasm", true),
        (&["pdf"], Opaque, "application/pdf", false),
        (&["png"], Opaque, "image/png", false),
        (&["jpg", "jpeg"], Opaque, "image/jpeg", false),
        (&["gif"], Opaque, "image/gif", false),
        (&["webp"], Opaque, "image/webp", false),
        (&["avif"], Opaque, "image/avif", false),
        (&["ico"], Opaque, "image/x-icon", true),
        (&["bmp"], Opaque, "image/bmp", true),
        (&["woff"], Opaque, "font/woff", false),
        (&["woff2"], Opaque, "font/woff2", false),
        (&["ttf"], Opaque, "font/ttf", true),
        (&["otf"], Opaque, "font/otf", true),
        (&["eot"], Opaque, "application/vnd.ms-fontobject", true),
        (&["mp4"], Opaque, "video/mp4", false),
        (&["webm"], Opaque, "video/webm", false),
        (&["mp3"], Opaque, "audio/mpeg", false),
        (&["ogg"], Opaque, "audio/ogg", false),
        (&["zip"], Opaque, "application/zip", false),
        (&["gz"], Opaque, "application/gzip", false),
    ]
};

/// Names requested without a reference in a page: by programs, crawlers, hosts, and browsers on their own.
pub(super) const KEPT: &[&str] = &[
    "robots.txt",
    "favicon.ico",
    "/sitemap*",
    "/.well-known/",
    "ads.txt",
    "app-ads.txt",
    "humans.txt",
    "security.txt",
    "apple-touch-icon*.png",
    "browserconfig.xml",
    "crossdomain.xml",
    "/CNAME",
    "/_headers",
    "/_redirects",
    ".*",
];

/// Returns whether `pattern` matches a path. `*` matches anything but a slash, `**` anything, `?` one letter. A pattern
/// with a slash applies to the whole path, one without to the name. A slash at the end matches everything below.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    if let Some(directory) = pattern.strip_suffix('/') {
        let below = format!("/{}/**", directory.trim_start_matches('/'));
        return matches(&below, path);
    }
    if pattern.contains('/') {
        return glob(pattern.trim_start_matches('/').as_bytes(), path.as_bytes());
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    glob(pattern.as_bytes(), name.as_bytes())
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    // The places after the last two kinds of stars, to go back to: a star takes one byte more each time. The weaker one
    // cannot pass a slash, so going back further may be needed.
    let (mut p, mut t) = (0, 0);
    let mut one: Option<(usize, usize)> = None;
    let mut any: Option<(usize, usize)> = None;
    while t < text.len() || p < pattern.len() {
        let star = pattern[p..].iter().take_while(|b| **b == b'*').count();
        if star > 0 {
            p += star;
            if star > 1 {
                (any, one) = (Some((p, t)), None);
            } else {
                one = Some((p, t));
            }
            continue;
        }
        let fits = p < pattern.len()
            && t < text.len()
            && (pattern[p] == text[t] || (pattern[p] == b'?' && text[t] != b'/'));
        if fits {
            (p, t) = (p + 1, t + 1);
            continue;
        }
        match (one, any) {
            (Some((at, from)), _) if from < text.len() && text[from] != b'/' => {
                one = Some((at, from + 1));
                (p, t) = (at, from + 1);
            }
            (_, Some((at, from))) if from < text.len() => {
                (any, one) = (Some((at, from + 1)), None);
                (p, t) = (at, from + 1);
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_names_or_of_paths() {
        for (pattern, path, is_meant) in [
            ("*.pdf", "a/b.pdf", true),
            ("*.pdf", "a/b.pdf.txt", false),
            ("robots.txt", "x/robots.txt", true),
            ("/CNAME", "CNAME", true),
            ("/CNAME", "x/CNAME", false),
            ("img/*.png", "img/a.png", true),
            ("img/*.png", "img/x/a.png", false),
            ("img/**.png", "img/x/a.png", true),
            ("img/", "img/x/a.png", true),
            ("img/", "other/img/a.png", false),
            ("**/x/*.js", "a/b/x/c.js", true),
            ("**/x/*.js", "a/x/y/x/c.js", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            (".*", ".htaccess", true),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, path), is_meant, "{pattern} {path}");
        }
    }

    #[test]
    fn kinds_are_told_by_names() {
        assert_eq!(FileType::of("A.HTML").media_type, "text/html");
        assert!(FileType::of("manifest.json").is_page());
        assert_eq!(FileType::of("x.manifest.json").language, Language::Data);
        assert_eq!(FileType::of("LICENSE"), OTHER);
    }
}
