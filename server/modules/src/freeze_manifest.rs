//! `freeze_manifest`: serves a tree made by `firstbyte freeze`, in which a file name never changes its content.
//!
//! A name with a hash in the manifest is served with a `Cache-Control` for permanent caching. An unknown hash is 404,
//! without a look at the disk. Other names are unaffected. Only the hash is compared, so any root or alias of the tree
//! works. Absent: rereading a changed manifest before a reload.
//!
//! Source: of our own; docs/freeze.md. RFC 8246 for `immutable`.

pub mod format;

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Contexts, Directive, os_error};
use engines::http::FieldId;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Inherit, Module, Step};
use server_http::settings;
use server_http::settings_set::inherited;

use format::{Manifest, hash_in_name};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "freeze_manifest",
    directives: &[PLAIN, MAIN_PLAIN, ROWS],
    settings: &[
        <FreezeLoc as server_http::settings_set::Conf>::def,
        <FreezeMain as server_http::settings_set::Conf>::def,
    ],
    handlers: &[Handler::PreAccess(refuse)],
    header_stage: Some(stage),
    inherits: &[("freeze_manifest", Inherit::Around)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct FreezeLoc: Location / PLAIN {}
    extra {
        /// `freeze_manifest`.
        manifest: Option<Arc<Names>> = inherited,
    }
}

settings! {
    /// Settings of the whole configuration.
    pub(crate) struct FreezeMain: Main / MAIN_PLAIN {}
    extra {
        /// Cache of manifests, so that several locations share one.
        read: Vec<(PathBuf, Arc<Names>)>,
    }
    merge forget;
}

fn forget(own: &mut FreezeMain, _: Option<&FreezeMain>) {
    own.read = Vec::new();
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Manifest of a frozen tree: names with a hash that caches may keep forever.
    directive "freeze_manifest": Contexts::LOCATION, TAKE1, "", "file" => freeze_manifest;
}

fn freeze_manifest(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<FreezeLoc>().manifest.is_some())?;
    let path = PathBuf::from(OsString::from_vec(b.full_path(d.arg(0))));
    let known = &b.conf_mut::<FreezeMain>().read;
    let known = known.iter().find(|(read, _)| *read == path);
    let names = match known {
        Some((_, names)) => Arc::clone(names),
        None => {
            let failed = |what: &str, why: String| {
                let text = format!("{what} \"{}\" failed ({why})", path.display());
                ConfError::word(d, d.word(0), text)
            };
            let file = b.loader().source().open(&path);
            let bytes = file.and_then(|file| file.read());
            let bytes = bytes.map_err(|error| failed("open()", os_error(&error)))?;
            let manifest = Manifest::parse(&bytes).map_err(|why| failed("manifest", why))?;
            let names = Arc::new(Names::new(&manifest));
            let entry = (path, Arc::clone(&names));
            b.conf_mut::<FreezeMain>().read.push(entry);
            names
        }
    };
    b.conf_mut::<FreezeLoc>().manifest = Some(names);
    Ok(())
}

/// The names of a manifest that requests are classified by.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The hashes of names, in order.
    hashes: Vec<u64>,
    /// Names that look like they have a hash, but are original names.
    plain: HashSet<Vec<u8>>,
}

/// The class of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameState {
    /// It has a hash of the manifest.
    Hashed,
    /// It has a hash that is not in the manifest.
    Stale,
    /// It has no hash, or is an original name that looks like it has one.
    Plain,
}

impl Names {
    fn new(manifest: &Manifest) -> Self {
        let mut names = Self::default();
        for (path, entry) in &manifest.files {
            let name = last_part(entry.path.as_bytes());
            match hash_in_name(name) {
                Some(hash) if *path != entry.path => names.hashes.push(hash),
                Some(_) => {
                    names.plain.insert(name.to_vec());
                    let siblings = entry.encodings.keys();
                    let siblings = siblings.map(|coding| [name, b".", coding.as_bytes()].concat());
                    names.plain.extend(siblings);
                }
                None => {}
            }
        }
        names.hashes.sort_unstable();
        names.hashes.dedup();
        names
    }

    fn look_up(&self, uri: &[u8]) -> NameState {
        let name = last_part(uri);
        match hash_in_name(name) {
            Some(hash) if self.hashes.binary_search(&hash).is_ok() => NameState::Hashed,
            Some(_) if !self.plain.contains(name) => NameState::Stale,
            _ => NameState::Plain,
        }
    }
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Runs before `try_files`, and before authentication: the hashes are public in the pages.
fn refuse(x: &mut Exchange, _: &mut Ctx<'_>) -> Step {
    let stale = x
        .route
        .loc::<FreezeLoc>()
        .manifest
        .as_ref()
        .is_some_and(|names| names.look_up(&x.target.uri) == NameState::Stale);
    if stale { Step::Status(404) } else { Step::Next }
}

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    if !matches!(x.reply.status, 200 | 206 | 304) {
        return Ok(());
    }
    let Some(names) = &x.route.loc::<FreezeLoc>().manifest else {
        return Ok(());
    };
    if names.look_up(&x.target.uri) == NameState::Hashed {
        x.reply.fields.remove(FieldId::Expires);
        x.reply.fields.remove(FieldId::CacheControl);
        x.reply
            .fields
            .push_id(FieldId::CacheControl, b"Cache-Control", IMMUTABLE);
    }
    Ok(())
}

/// One year, which caches treat as permanent.
const IMMUTABLE: &[u8] = b"public, max-age=31536000, immutable";
