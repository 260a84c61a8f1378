//! `empty_gif`: a transparent image of one pixel.
//!
//! Source: nginx documentation, `ngx_http_empty_gif_module`; GIF89a.

use conf::Contexts;
use engines::http::{Chunk, Method};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Inherit, Module};
use server_http::reply;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "empty_gif",
    directives: &[ROWS],
    inherits: &[("empty_gif", Inherit::Blocks)],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Answers with a transparent image of one pixel.
    directive "empty_gif": Contexts::LOCATION, NOARGS, "", "" => |b, _| {
        b.set_handler(handle);
        Ok(())
    };
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.target.method, Method::Get | Method::Head) {
        return Content::Status(405);
    }
    x.reply.status = 200;
    x.reply.content_type.set(b"image/gif");
    x.reply.content_length = Some(GIF.len() as u64);
    x.reply.last_modified = Some(MODIFIED_S);
    reply::send(x, cx, Some(Chunk::Static(GIF)));
    Content::Sent
}

/// Last modification of the image, as in nginx, seconds since 1970.
const MODIFIED_S: i64 = 23_349_600;

/// Header, screen of one pixel, palette of black and white, control extension (white is transparent), image, trailer.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff\x21\xf9\x04\x01\0\0\x01\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0\x3b";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_whole() {
        assert_eq!(GIF.len(), 43);
        assert!(GIF.ends_with(b"\x3b"));
    }
}
