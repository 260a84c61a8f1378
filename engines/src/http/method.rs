//! Request methods: those with a name in nginx, and all others as `Other`.
//!
//! Source: RFC 9110 section 9, RFC 4918 (WebDAV), RFC 5789 (PATCH).

/// A request method; the text of an unknown one is in `RequestHead::method_name`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `MKCOL`.
    Mkcol,
    /// `COPY`.
    Copy,
    /// `MOVE`.
    Move,
    /// `OPTIONS`.
    Options,
    /// `PROPFIND`.
    Propfind,
    /// `PROPPATCH`.
    Proppatch,
    /// `LOCK`.
    Lock,
    /// `UNLOCK`.
    Unlock,
    /// `PATCH`.
    Patch,
    /// `TRACE`.
    Trace,
    /// `CONNECT`.
    Connect,
    /// Any other method name.
    Other,
}

impl Method {
    /// The method called `name`; names are case-sensitive (RFC 9110 section 9.1).
    #[must_use]
    pub fn parse(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"MKCOL" => Self::Mkcol,
            b"COPY" => Self::Copy,
            b"MOVE" => Self::Move,
            b"OPTIONS" => Self::Options,
            b"PROPFIND" => Self::Propfind,
            b"PROPPATCH" => Self::Proppatch,
            b"LOCK" => Self::Lock,
            b"UNLOCK" => Self::Unlock,
            b"PATCH" => Self::Patch,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_are_case_sensitive() {
        assert_eq!(Method::parse(b"GET"), Method::Get);
        assert_eq!(Method::parse(b"PROPPATCH"), Method::Proppatch);
        assert_eq!(Method::parse(b"get"), Method::Other);
        assert_eq!(Method::parse(b""), Method::Other);
        assert_eq!(Method::parse(b"PURGE"), Method::Other);
    }
}
