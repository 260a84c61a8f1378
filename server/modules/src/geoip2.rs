//! `geoip2`: variables from any value of a MaxMind DB file.
//!
//! A block names a file and the paths of values in its records, each with a variable. With `auto_reload` the worker
//! checks the file periodically and reloads it after a change, with the rights of the worker, on a background thread.
//!
//! Source: documentation of the third-party module ngx_http_geoip2_module.

mod live;

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Contexts, Directive, os_error, parse_time_s};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;
use server_http::value::Value;
use server_http::vars::Compute;

use crate::geoip::append_value;
use crate::networks::{self, Network, parse_ip};
use live::Live;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "geoip2",
    directives: &[PLAIN, ROWS],
    settings: &[<Geoip2Main as server_http::settings_set::Conf>::def],
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct Geoip2Main: Main / PLAIN {
        /// Whether the client is the last address that is not trusted, instead of the last one.
        recursive "geoip2_proxy_recursive": bool = false, "off", Contexts::HTTP;
    }
    extra {
        /// `geoip2_proxy`.
        proxies: Vec<Network>,
        /// The files of `geoip2`.
        files: Vec<Vec<u8>>,
    }
    merge forget;
}

fn forget(own: &mut Geoip2Main, _: Option<&Geoip2Main>) {
    own.files = Vec::new();
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Creates variables from the values of a MaxMind DB file.
    block "geoip2": Contexts::HTTP, TAKE1, "", "file { ... }" => geoip2;

    /// Proxies that are trusted to name the client.
    directive "geoip2_proxy": Contexts::HTTP, TAKE1, "", "address | CIDR" => |b, d| {
        let network = networks::network(b, d, d.word(0))?;
        b.conf_mut::<Geoip2Main>().proxies.push(network);
        Ok(())
    };
}

fn geoip2(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let full = b.full_path(d.arg(0));
    let files = &mut b.conf_mut::<Geoip2Main>().files;
    if files.contains(&full) {
        let text = format!("Duplicate GeoIP2 mmdb - {}", String::from_utf8_lossy(&full));
        return Err(ConfError::word(d, d.word(0), text));
    }
    files.push(full.clone());
    let path = PathBuf::from(OsString::from_vec(full));
    let failed = |why: String| {
        let text = format!("MMDB_open(\"{}\") failed - {why}", path.display());
        ConfError::word(d, d.word(0), text)
    };
    let file = b.loader().source().open(&path);
    let file = file.map_err(|error| failed(os_error(&error)))?;
    let mut database = Live::open(path.clone(), &file).map_err(failed)?;
    let mut lines = Vec::new();
    conf::each(b, d.items(), |b, line| {
        if let Some(line) = BlockVariable::read(b, line, &mut database)? {
            lines.push(line);
        }
        Ok(())
    })?;
    let database = Arc::new(database);
    b.periodic_tasks.push(database.clone());
    for BlockVariable { directive, found } in lines {
        let lookup = Lookup {
            database: Arc::clone(&database),
            found,
        };
        b.vars
            .define(&directive.name.text[1..], Arc::new(lookup))
            .map_err(|e| ConfError::at(&directive, e))?;
    }
    Ok(())
}

/// A variable of a block.
struct BlockVariable {
    directive: Directive,
    found: ValueSource,
}

/// The source of a value.
enum ValueSource {
    Metadata(Metadata),
    Data {
        path: Vec<Vec<u8>>,
        default: Option<Vec<u8>>,
        /// The value with the address; `None` for the client's own.
        source: Option<Value>,
    },
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metadata {
    BuildEpoch,
    LastCheck,
    LastChange,
}

impl BlockVariable {
    /// Reads a line; `None` for a setting of the file.
    fn read(
        b: &mut ConfigBuilder,
        line: &Directive,
        file: &mut Live,
    ) -> Result<Option<Self>, ConfError> {
        let name = line.name.as_str();
        if name == "auto_reload" {
            let [interval] = line.args.as_slice() else {
                let text = "invalid number of arguments for auto_reload";
                return Err(ConfError::at(line, text));
            };
            file.interval_s = parse_time_s(&interval.text).ok_or_else(|| {
                let text = format!("invalid interval for auto_reload \"{}\"", interval.as_str());
                ConfError::word(line, interval, text)
            })?;
            return Ok(None);
        }
        if !name.starts_with('$') {
            return Err(ConfError::at(line, format!("invalid setting \"{name}\"")));
        }
        if name.len() < 2 {
            return Err(ConfError::at(
                line,
                format!("invalid variable name \"{name}\""),
            ));
        }
        let found = if line
            .args
            .first()
            .is_some_and(|word| word.text == b"metadata")
        {
            ValueSource::Metadata(metadata(line)?)
        } else {
            data(b, line)?
        };
        let directive = line.clone();
        Ok(Some(Self { directive, found }))
    }
}

fn metadata(line: &Directive) -> Result<Metadata, ConfError> {
    let [_, field] = line.args.as_slice() else {
        let text = format!("invalid number of arguments for \"{}\"", line.name.as_str());
        return Err(ConfError::at(line, text));
    };
    match field.text.as_slice() {
        b"build_epoch" => Ok(Metadata::BuildEpoch),
        b"last_check" => Ok(Metadata::LastCheck),
        b"last_change" => Ok(Metadata::LastChange),
        _ => {
            let text = format!("invalid metadata field \"{}\"", field.as_str());
            Err(ConfError::word(line, field, text))
        }
    }
}

fn data(b: &mut ConfigBuilder, line: &Directive) -> Result<ValueSource, ConfError> {
    let name = line.name.as_str();
    let (mut default, mut source) = (None, None);
    // Parameters end at the first word without `=`.
    let parameters = line
        .args
        .iter()
        .take_while(|word| word.text.contains(&b'='));
    let count = parameters.clone().count();
    for word in parameters {
        let again = |what: &str| {
            let text = format!("{what} has already been declared for \"{name}\"");
            ConfError::word(line, word, text)
        };
        let value = |prefix: &[u8]| word.text.strip_prefix(prefix).filter(|v| !v.is_empty());
        if let Some(value) = value(b"default=") {
            if default.replace(value.to_vec()).is_some() {
                return Err(again("default"));
            }
        } else if let Some(value) = value(b"source=") {
            if !value.starts_with(b"$") {
                let value = String::from_utf8_lossy(value);
                let text = format!("invalid source variable name \"{value}\"");
                return Err(ConfError::word(line, word, text));
            }
            let compiled = Value::compile_bytes(b, line, word, value)?;
            if source.replace(compiled).is_some() {
                return Err(again("source"));
            }
        } else {
            let text = format!("invalid setting \"{}\" for \"{name}\"", word.as_str());
            return Err(ConfError::word(line, word, text));
        }
    }
    let path = line.args[count..].iter().map(|word| word.text.to_vec());
    Ok(ValueSource::Data {
        path: path.collect(),
        default,
        source,
    })
}

/// One variable.
struct Lookup {
    database: Arc<Live>,
    found: ValueSource,
}

impl Compute for Lookup {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let (path, default, source) = match &self.found {
            ValueSource::Metadata(field) => {
                let number = match field {
                    Metadata::BuildEpoch => self.database.with(|file| file.build_epoch as i64),
                    Metadata::LastCheck => self.database.last_check_s(),
                    Metadata::LastChange => self.database.last_change_s(),
                };
                return Some(number.to_string().into_bytes());
            }
            ValueSource::Data {
                path,
                default,
                source,
            } => (path, default, source),
        };
        let ip = match source {
            Some(source) => parse_ip(&source.to_vec(x, cx)),
            None => client(x),
        };
        let mut value = Vec::new();
        let found = ip.is_some_and(|ip| {
            self.database
                .with(|file| append_value(file.value(ip, path), &mut value))
        });
        if found { Some(value) } else { default.clone() }
    }
}

/// The client's address; `None` for one of a UNIX-domain socket.
fn client(x: &Exchange) -> Option<IpAddr> {
    let conf: &Geoip2Main = x.route.http.main();
    networks::client_ip(x, &conf.proxies, *conf.recursive)
}
