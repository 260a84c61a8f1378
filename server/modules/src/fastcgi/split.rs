//! Splits the URI into the name of a script and its path info: `$fastcgi_script_name` and `$fastcgi_path_info`.
//!
//! Source: nginx documentation, directives `fastcgi_split_path_info`, `fastcgi_index`.

use std::ops::Range;
use std::rc::Rc;

use server_http::exchange::Exchange;
use server_http::variables;
use server_http::vars::Variable;

use super::conf::FastCgiLoc;

/// The variables.
pub(super) const VARIABLES: &[Variable] = variables! {
    "fastcgi_script_name":
        "URI, or its first part as split by fastcgi_split_path_info; fastcgi_index is appended to a final \"/\""
        => |x, _, _, out| {
            let (name, _) = split(x);
            out.extend_from_slice(&x.target.uri[name.clone()]);
            if x.target.uri[name].ends_with(b"/") {
                out.extend_from_slice(&x.route.loc::<FastCgiLoc>().index.0);
            }
            true
        };
    "fastcgi_path_info": "second part of the URI as split by fastcgi_split_path_info" => |x, _, _, out| {
        let (_, info) = split(x);
        out.extend_from_slice(&x.target.uri[info]);
        true
    };
};

/// Returns the ranges of the script name and of the path info in the URI. Not cached: `try_files` and `rewrite` change
/// the URI.
fn split(x: &mut Exchange) -> (Range<usize>, Range<usize>) {
    let http = Rc::clone(&x.route.http);
    let whole = (0..x.target.uri.len(), 0..0);
    let Some(regex) = &x.loc::<FastCgiLoc>(&http).split_path_info.0 else {
        return whole;
    };
    let uri = std::mem::take(&mut x.target.uri);
    let found = regex.find(x, &uri);
    x.target.uri = uri;
    match found {
        Ok(Some(groups)) => {
            let group = |n: usize| groups.get(n).cloned().flatten().unwrap_or(0..0);
            (group(1), group(2))
        }
        // If the expression exceeds its limits, the request fails later.
        Ok(None) | Err(_) => whole,
    }
}
